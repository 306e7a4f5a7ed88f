; How a frontend reads the attributes of a model's operators. Keyword sets: `attributes`, names of
; dictionaries of attributes; `converter_table`, functions or variables that hold a table from
; operators to converters.

; attr["mode"]
(subscript
  value: [(identifier) @name (attribute attribute: (identifier) @name)]
  subscript: (string (string_content) @key)
  (#any-of? @name $attributes)) @site.attribute_taken

; attr["mode"] = ...: not read, but given by the frontend itself
(assignment
  left: (subscript
    value: [(identifier) @name (attribute attribute: (identifier) @name)]
    subscript: (string (string_content) @key)) @site.attribute_given
  (#any-of? @name $attributes))

; attr.get("mode"), attr.pop("mode")
(call
  function: (attribute
    object: [(identifier) @name (attribute attribute: (identifier) @name)]
    attribute: (identifier) @callee)
  arguments: (argument_list . (string (string_content) @key))
  (#any-of? @name $attributes)) @site.attribute_asked

; attr["given"]["count"]: of what the frontend puts into the attributes
(subscript
  value: (subscript
    value: [(identifier) @name (attribute attribute: (identifier) @name)]
    subscript: (string))
  subscript: (string (string_content) @key)
  (#any-of? @name $attributes)) @site.attribute_asked

(subscript
  value: (subscript
    value: [(identifier) @name (attribute attribute: (identifier) @name)]
    subscript: (string (string_content) @key)) @site.attribute_given
  subscript: (string)
  (#any-of? @name $attributes))

; "mode" in attr
(comparison_operator
  (string (string_content) @key)
  [(identifier) @name (attribute attribute: (identifier) @name)]
  (#any-of? @name $attributes)) @site.attribute_asked

; for name in ["a", "b"]: ... attr[name] ...
(for_statement
  right: [(list (string (string_content) @key)) (tuple (string (string_content) @key))]
  body: (block (_ [
    (subscript value: (identifier) @name)
    (_ (subscript value: (identifier) @name))]))
  (#any-of? @name $attributes)) @site.attribute_asked

; helper(attr, ...), Other.method(..., attr, ...): read on there
(call
  function: [(identifier) @callee
             (attribute object: (_) @owner attribute: (identifier) @callee)]
  arguments: (argument_list [
    (identifier) @name
    (keyword_argument value: (identifier) @name)
    (dictionary_splat (identifier) @name)])
  (#any-of? @name $attributes)) @site.attributes_passed

; {"Relu": Relu, ...}
(function_definition
  name: (identifier) @table
  body: (block (return_statement (dictionary
    (pair
      key: (string (string_content) @operator)
      value: [(identifier) @name (attribute attribute: (identifier) @name)]) @site.converter)))
  (#any-of? @table $converter_table))

(assignment
  left: (identifier) @table
  right: (dictionary
    (pair
      key: (string (string_content) @operator)
      value: [(identifier) @name (attribute attribute: (identifier) @name)]) @site.converter)
  (#any-of? @table $converter_table))

; class Relu(Base):
(class_definition
  name: (identifier) @name
  superclasses: (argument_list [(identifier) @base (attribute attribute: (identifier) @base)])
  (#not-any-of? @name $converter_table)) @site.class

(class_definition
  name: (identifier) @name
  (#not-any-of? @name $converter_table)) @site.class
