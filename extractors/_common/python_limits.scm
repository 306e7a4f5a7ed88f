; Limits by their names: constants such as MAX_THREADS. @words: the words of a name.

(module (expression_statement (assignment
  left: (identifier) @name @words
  right: (_) @bound) @site.limit)
  (#match? @name "^(k(Max|Min)[A-Z][A-Za-z0-9]*|([A-Z0-9]+_)*(MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(_[A-Z0-9]+)*)$"))

(class_definition body: (block (expression_statement (assignment
  left: (identifier) @name @words
  right: (_) @bound) @site.limit))
  (#match? @name "^(k(Max|Min)[A-Z][A-Za-z0-9]*|([A-Z0-9]+_)*(MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(_[A-Z0-9]+)*)$"))

; What a function always returns.
(function_definition
  name: (identifier) @name
  body: (block . (return_statement (integer) @bound) .)) @site.constant
