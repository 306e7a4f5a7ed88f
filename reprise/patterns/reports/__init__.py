"""What ``reprise check`` found, written for people (text) and for tools (JSON, SARIF 2.1.0)."""
