; Likely sites in Python, for `reprise mine new --suggest`. A capture's name says what was found:
; names that names.toml looks through (@called, @factor, @compared), idioms whose function counts
; (@ceiling, @round_up), and names that the code around them gives away (@fusion_table, ...).

(call
  function: [(identifier) @called (attribute attribute: (identifier) @called)]
  arguments: (argument_list) @arguments)

(binary_operator operator: ["%" "//"]
  right: [(identifier) @factor (attribute attribute: (identifier) @factor)
          (subscript value: (identifier) @factor)])

(comparison_operator
  [(identifier) @compared (attribute attribute: (identifier) @compared)])

; -(-a // b)
(unary_operator argument: (parenthesized_expression
  (binary_operator left: (unary_operator) operator: "//"))) @ceiling

; (a + b - 1) // b
(binary_operator
  left: (parenthesized_expression
    (binary_operator
      left: (binary_operator operator: "+") operator: "-" right: (integer) @one))
  operator: "//" (#eq? @one "1")) @ceiling

; ... // b * b
(binary_operator
  left: (binary_operator operator: "//" right: (_) @b)
  operator: "*" right: (_) @again (#eq? @b @again)) @round_up
(binary_operator
  left: (_) @again operator: "*"
  right: (binary_operator operator: "//" right: (_) @b) (#eq? @b @again)) @round_up

; "seq": ["Conv", "Relu"]
(pair
  key: (string (string_content) @fusion_table)
  value: (list . (string (string_content) @first) . (string (string_content) @second))
  (#match? @first "^[A-Z][A-Za-z]+$") (#match? @second "^[A-Z][A-Za-z]+$"))

; CallFunction(add, CallFunction(mm, ...))
(call
  function: (identifier) @fusion_call
  arguments: (argument_list . [(identifier) (attribute)] @operator
    (call function: (identifier) @inner arguments: (argument_list . [(identifier) (attribute)])))
  (#eq? @fusion_call @inner))

; is_op("relax.add")(x, y)
(call
  function: (call
    function: (identifier) @fusion_operator
    arguments: (argument_list . (string) @operator .))
  arguments: (argument_list . (_)))

; def table(): return {"Relu": Relu, ...}; counts its entries
(function_definition
  name: (identifier) @converter_table
  body: (block (return_statement (dictionary
    (pair key: (string) value: [(identifier) (attribute) (call)]) @entry))))
(module (expression_statement (assignment
  left: (identifier) @converter_table
  right: (dictionary
    (pair key: (string) @first value: [(identifier) (attribute) (call)]))))
  (#match? @first "^.[A-Z][A-Za-z]+.$"))

; attrs["axis"]
(subscript value: (identifier) @attributes subscript: (string) (#match? @attributes "^attr"))

; every function, and those that only return something
(function_definition) @function
(function_definition
  body: (block . (expression_statement (string))? . (return_statement) @returned .)) @pure
