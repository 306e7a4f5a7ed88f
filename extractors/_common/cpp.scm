; Sites in C++: the same kinds and captures as in python.scm.

(call_expression
  function: [(identifier) @callee
             (field_expression argument: (_) @receiver field: (field_identifier) @callee)
             (qualified_identifier name: (identifier) @callee)]
  arguments: (argument_list) @arguments
  (#any-of? @callee $called)) @site.call

; --- guards ---
(call_expression
  function: (identifier) @callee
  arguments: (argument_list . (_) @condition)
  (#any-of? @callee $assert)) @site.assert

; ICHECK_EQ(a, b): the macro's name says the relation.
(call_expression
  function: (identifier) @compare
  arguments: (argument_list . (_) @left . (_) @right .)
  (#any-of? @compare $assert_compare)) @site.assert

(if_statement
  condition: (condition_clause value: (_) @unless)
  consequence: [
    (throw_statement)
    (compound_statement (throw_statement) .)
    (return_statement (call_expression function: (_) @refusal))
    (compound_statement (return_statement (call_expression function: (_) @refusal)) .)]
  (#match? @refusal "emit(Op)?Error$")) @site.raise

(if_statement
  condition: (condition_clause value: (_) @unless)
  consequence: [
    (return_statement [(false) (null) (call_expression function: (identifier) @refusal)])
    (compound_statement
      (return_statement [(false) (null) (call_expression function: (identifier) @refusal)]) .)]
  (#match? @refusal "[Ff]ail|[Ee]rror") (#match? @unless "%")) @site.refuse

; an answer of another kind: the function has a way of its own where the condition holds
(if_statement
  condition: (condition_clause value: (_) @unless)
  consequence: [
    (return_statement (call_expression function: (identifier) @answer))
    (compound_statement
      (return_statement (call_expression function: (identifier) @answer)) .)]
  (#not-match? @answer "[Ff]ail|[Ee]rror") (#match? @unless "%")) @site.answer

; --- rounding up to a multiple of @factor, spelt out ---
; (extent + factor - 1) / factor * factor
(binary_expression
  left: (binary_expression
    left: (parenthesized_expression
      (binary_expression
        left: (binary_expression left: (_) @extent operator: "+" right: (_) @factor)
        operator: "-" right: (number_literal) @one))
    operator: "/" right: (_) @again)
  operator: "*" right: (_) @factor2
  (#eq? @factor @again) (#eq? @factor @factor2) (#eq? @one "1")) @site.round_up

; ceilDiv(extent, factor) * factor
(binary_expression
  left: (call_expression
    function: [(identifier) @ceiling
               (field_expression field: (field_identifier) @ceiling)
               (qualified_identifier name: (identifier) @ceiling)]
    arguments: (argument_list . (_) @extent . (_) @factor .))
  operator: "*" right: (_) @again
  (#eq? @factor @again) (#any-of? @ceiling $ceiling)) @site.round_up

; factor - extent % factor, which is added to the extent
(binary_expression
  left: (_) @factor operator: "-"
  right: (binary_expression left: (_) @extent operator: "%" right: (_) @again)
  (#eq? @factor @again) (#set! value.padded "{extent} + {variable}")) @site.round_amount

; --- cutting an extent into pieces ---
(binary_expression
  left: (_) @extent operator: "/"
  right: [(identifier) @factor @name
          (field_expression field: (field_identifier) @name) @factor
          (subscript_expression argument: (identifier) @name) @factor]
  (#any-of? @name $tile $unroll_factor)) @site.cut

; extent / tile * tile: rounded down, which leaves a remainder on purpose
(binary_expression
  left: [(binary_expression left: (_) @extent operator: "/" right: (_) @factor)
         (parenthesized_expression
           (binary_expression left: (_) @extent operator: "/" right: (_) @factor))]
  operator: "*" right: (_) @again
  (#eq? @factor @again)) @site.round_down

; extent % tile == 0, wherever the compiler asks
(binary_expression
  left: (binary_expression
    left: (_) @extent operator: "%"
    right: [(identifier) @factor @name
            (field_expression field: (field_identifier) @name) @factor
            (subscript_expression argument: (identifier) @name) @factor])
  operator: ["==" "!="]
  right: (number_literal) @zero
  (#eq? @zero "0") (#any-of? @name $tile $unroll_factor)) @site.asks

; for (i = 0; i < extent; i += factor)
(for_statement
  condition: (binary_expression operator: "<" right: (_) @extent)
  update: (assignment_expression operator: "+=" right: (_) @factor)) @site.step

; --- fusion ---
; IsOp("relax.add")(x, y)
(call_expression
  function: (call_expression
    function: (identifier) @constructor
    arguments: (argument_list . (_) @consumer .))
  arguments: (argument_list) @arguments
  (#any-of? @constructor $fusion_operator)) @site.pattern

; --- functions that answer early with 0, or with an extent as it is ---
(function_definition
  declarator: (function_declarator
    declarator: [(identifier) @name
                 (field_identifier) @name
                 (qualified_identifier name: (identifier) @name)])
  body: (compound_statement (if_statement consequence: [
    (return_statement (number_literal) @early)
    (compound_statement (return_statement (number_literal) @early) .)]))
  (#eq? @early "0") (#any-of? @name $pad $pad_amount)) @site.early_return

(function_definition
  declarator: (function_declarator
    declarator: [(identifier) @name
                 (field_identifier) @name
                 (qualified_identifier name: (identifier) @name)]
    parameters: (parameter_list (parameter_declaration declarator: (identifier) @parameter)))
  body: (compound_statement (if_statement consequence: [
    (return_statement (identifier) @early)
    (compound_statement (return_statement (identifier) @early) .)]))
  (#eq? @early @parameter) (#any-of? @name $pad $pad_amount)) @site.early_return
