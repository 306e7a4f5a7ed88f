"""From a small program that shows a defect to a pattern: one dimension at a time.

It begins with the most specific draft of the program. A *dimension* is one thing that the draft
says: a line, an operator, an attribute, an extent… Each is taken up once, in an order that makes
later samples cheap (context that does not matter goes first). Samples are made that match the draft
without it *and differ from the program in it*; if the target shows that all of them trigger the
same defect, what the draft says of it is dropped. If some do, the plainest condition that tells
them from the others takes its place, once fresh samples have confirmed it; if none do, it stays.
"""
