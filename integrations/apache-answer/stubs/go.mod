module github.com/apache/answer

go 1.19
