; Limits by their names: constants such as MAX_THREADS, kMaxThreads. @words: the words of a name.

(declaration
  declarator: (init_declarator
    declarator: [(identifier) @name @words (array_declarator declarator: (identifier) @name @words)]
    value: (_) @bound)
  (#match? @name "^(k(Max|Min)[A-Z][A-Za-z0-9]*|([A-Z0-9]+_)*(MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(_[A-Z0-9]+)*)$")) @site.limit

(field_declaration
  declarator: (field_identifier) @name @words
  default_value: (_) @bound
  (#match? @name "^(k(Max|Min)[A-Z][A-Za-z0-9]*|([A-Z0-9]+_)*(MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(_[A-Z0-9]+)*)$")) @site.limit

(preproc_def
  name: (identifier) @name @words
  value: (preproc_arg) @bound
  (#match? @name "^(k(Max|Min)[A-Z][A-Za-z0-9]*|([A-Z0-9]+_)*(MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(_[A-Z0-9]+)*)$")) @site.limit

; What a function always returns.
(function_definition
  declarator: (function_declarator
    declarator: [(identifier) @name
                 (field_identifier) @name
                 (qualified_identifier name: (identifier) @name)])
  body: (compound_statement . (return_statement (number_literal) @bound) .)) @site.constant
