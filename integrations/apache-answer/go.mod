module askalike.dev/apache-answer

go 1.19

require github.com/apache/answer v1.4.0

// For tests alone: Answer's own build ignores it, and takes the real interfaces.
replace github.com/apache/answer => ./stubs
