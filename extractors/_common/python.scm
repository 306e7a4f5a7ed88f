; Sites in Python. The outermost capture is @site.KIND. Other captures become facts: captured(S, ROLE,
; TEXT) and, where they can be translated, expression(S, ROLE, E). $NAME stands for the names of a
; keyword set of extractor.toml; a pattern with an empty set is left out.

; A call of a function that some keyword set names.
(call
  function: [(identifier) @callee
             (attribute object: (_) @receiver attribute: (identifier) @callee)]
  arguments: (argument_list) @arguments
  (#any-of? @callee $called)) @site.call

; --- guards: what must hold for the code after them to run ---
(assert_statement . (_) @condition) @site.assert

(if_statement
  condition: (_) @unless
  consequence: (block (raise_statement) .)) @site.raise

(if_statement
  condition: (_) @unless
  consequence: (block (return_statement) @refusal .)
  (#match? @refusal "^return *(None|False)?$") (#match? @unless "%")) @site.refuse

; an answer of another kind: the function has a way of its own where the condition holds
(if_statement
  condition: (_) @unless
  consequence: (block (return_statement) @answer .)
  (#not-match? @answer "^return *(None|False)?$") (#match? @unless "%")) @site.answer

; --- rounding up to a multiple of @factor, spelt out ---
; (extent + factor - 1) // factor * factor
(binary_operator
  left: (binary_operator
    left: (parenthesized_expression
      (binary_operator
        left: (binary_operator left: (_) @extent operator: "+" right: (_) @factor)
        operator: "-" right: (integer) @one))
    operator: "//" right: (_) @again)
  operator: "*" right: (_) @factor2
  (#eq? @factor @again) (#eq? @factor @factor2) (#eq? @one "1")) @site.round_up

; -(-extent // factor) * factor
(binary_operator
  left: (unary_operator
    argument: (parenthesized_expression
      (binary_operator
        left: (unary_operator argument: (_) @extent)
        operator: "//" right: (_) @factor)))
  operator: "*" right: (_) @again
  (#eq? @factor @again)) @site.round_up

; -1 * (extent // (-1 * factor)) * factor
(binary_operator
  left: (binary_operator
    left: (unary_operator argument: (integer) @one)
    operator: "*"
    right: (parenthesized_expression
      (binary_operator
        left: (_) @extent operator: "//"
        right: (parenthesized_expression
          (binary_operator
            left: (unary_operator argument: (integer) @one2) operator: "*"
            right: (_) @factor)))))
  operator: "*" right: (_) @again
  (#eq? @one "1") (#eq? @one2 "1") (#eq? @factor @again)) @site.round_up

; extent + (factor - extent) % factor
(binary_operator
  left: (_) @extent operator: "+"
  right: (binary_operator
    left: (parenthesized_expression
      (binary_operator left: (_) @factor operator: "-" right: (_) @extent2))
    operator: "%" right: (_) @again)
  (#eq? @factor @again) (#eq? @extent @extent2)) @site.round_up

; ceildiv(extent, factor) * factor
(binary_operator
  left: (call
    function: [(identifier) @ceiling (attribute attribute: (identifier) @ceiling)]
    arguments: (argument_list . (_) @extent . (_) @factor .))
  operator: "*" right: (_) @again
  (#eq? @factor @again) (#any-of? @ceiling $ceiling)) @site.round_up

; factor - extent % factor, which is added to the extent
(binary_operator
  left: (_) @factor operator: "-"
  right: (binary_operator left: (_) @extent operator: "%" right: (_) @again)
  (#eq? @factor @again) (#set! value.padded "{extent} + {variable}")) @site.round_amount

; --- cutting an extent into pieces of a tile's size, without a remainder ---
(binary_operator
  left: (_) @extent operator: "//"
  right: [(identifier) @factor @name
          (attribute attribute: (identifier) @name) @factor
          (subscript value: (identifier) @name) @factor]
  (#any-of? @name $tile $unroll_factor)) @site.cut

; extent // tile * tile: rounded down, which leaves a remainder on purpose
(binary_operator
  left: [(binary_operator left: (_) @extent operator: "//" right: (_) @factor)
         (parenthesized_expression
           (binary_operator left: (_) @extent operator: "//" right: (_) @factor))]
  operator: "*" right: (_) @again
  (#eq? @factor @again)) @site.round_down

; extent % tile == 0, wherever the compiler asks
(comparison_operator
  . (binary_operator
      left: (_) @extent operator: "%"
      right: [(identifier) @factor @name
              (attribute attribute: (identifier) @name) @factor
              (subscript value: (identifier) @name) @factor])
  operators: ["==" "!="]
  (integer) @zero .
  (#eq? @zero "0") (#any-of? @name $tile $unroll_factor)) @site.asks

; range(0, extent, factor)
(call
  function: (identifier) @callee
  arguments: (argument_list . (_) @start . (_) @extent . (_) @factor .)
  (#eq? @callee "range") (#not-match? @factor "^-?[01]$")) @site.step

; --- fusion ---
; "seq": ["Conv", "Relu"]
(pair
  key: (string (string_content) @key)
  value: (list (string (string_content) @operator))
  (#any-of? @key $fusion_table)) @site.sequence

; CallFunction(add, CallFunction(mm, ...), ...)
(call
  function: [(identifier) @constructor (attribute attribute: (identifier) @constructor)]
  arguments: (argument_list . (_) @consumer) @arguments
  (#any-of? @constructor $fusion_call)) @site.pattern

; is_op("relax.add")(x, y)
(call
  function: (call
    function: [(identifier) @constructor (attribute attribute: (identifier) @constructor)]
    arguments: (argument_list . (_) @consumer .))
  arguments: (argument_list) @arguments
  (#any-of? @constructor $fusion_operator)) @site.pattern

; --- functions that answer early with 0, or with an extent as it is ---
(function_definition
  name: (identifier) @name
  body: (block (if_statement
    consequence: (block (return_statement (integer) @early) .)))
  (#eq? @early "0") (#any-of? @name $pad $pad_amount)) @site.early_return

(function_definition
  name: (identifier) @name
  parameters: (parameters [(identifier) @parameter (typed_parameter . (identifier) @parameter)
                           (default_parameter name: (identifier) @parameter)])
  body: (block (if_statement
    consequence: (block (return_statement (identifier) @early) .)))
  (#eq? @early @parameter) (#any-of? @name $pad $pad_amount)) @site.early_return
