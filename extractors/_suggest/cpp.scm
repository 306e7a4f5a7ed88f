; Likely sites in C++: as in python.scm.

(call_expression
  function: [(identifier) @called
             (field_expression field: (field_identifier) @called)
             (qualified_identifier name: (identifier) @called)]
  arguments: (argument_list) @arguments)

(binary_expression operator: ["%" "/"]
  right: [(identifier) @factor (field_expression field: (field_identifier) @factor)
          (subscript_expression argument: (identifier) @factor)])

(binary_expression operator: ["<" "<=" ">" ">=" "=="]
  [(identifier) @compared (field_expression field: (field_identifier) @compared)])

; (a + b - 1) / b
(binary_expression
  left: (parenthesized_expression
    (binary_expression
      left: (binary_expression operator: "+") operator: "-" right: (number_literal) @one))
  operator: "/" (#eq? @one "1")) @ceiling

; ... / b * b
(binary_expression
  left: (binary_expression operator: "/" right: (_) @b)
  operator: "*" right: (_) @again (#eq? @b @again)) @round_up

; ICHECK(a == b), assert(a && "...")
(expression_statement (call_expression
  function: (identifier) @assert
  arguments: (argument_list . (binary_expression)))
  (#match? @assert "^([A-Z][A-Z0-9_]+|assert)$"))

; IsOp("relax.add")(x, y)
(call_expression
  function: (call_expression
    function: (identifier) @fusion_operator
    arguments: (argument_list . (string_literal) @operator .))
  arguments: (argument_list . (_)))

; #pragma unroll
(preproc_call argument: (preproc_arg) @pragma (#match? @pragma "unroll|simd|vectorize"))

; every function, and those that only return something
(function_definition) @function
(function_definition body: (compound_statement . (return_statement) @returned .)) @pure
