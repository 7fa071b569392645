package engine

// Bucket is which calls of a flow key count, as the owner of the key stores it for the next one.
type Bucket struct {
	Name string // 512 bytes at most
	// Fence is that of the shard of the key, which rises with each owner.
	Fence uint64
	Until int64  // Unix ms: Sweep removes it then
	Body  []byte // 8 KiB at most
}
