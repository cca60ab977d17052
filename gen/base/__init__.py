"""General tools: files, the cache, signals, options of commands, programs that are started."""
