"""Words and vectors in Milvus, which several machines search and one of them keeps in step with the store."""
