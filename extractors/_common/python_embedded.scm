; Conditions that a compiler holds as text, to evaluate later: f"size % {bandwidth} == 0". Only where
; extractor.toml names the functions that take them (`condition_text`); texts that are no condition
; give nothing.

((string) @embedded
  (#match? @embedded "[<>=]=|[<>]")
  (#not-any-of? @embedded $condition_text)) @site.embedded
