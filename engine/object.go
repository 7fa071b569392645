package engine

import (
	"cmp"
	"fmt"
)

// ObjectKey names an object: its kind ("secret", "channel" …), its app ("*": all apps), and
// its name within these.
type ObjectKey struct{ Kind, App, Name string }

func (k ObjectKey) String() string { return fmt.Sprintf("%s %s/%s", k.Kind, k.App, k.Name) }

// Compare orders keys by kind, then by app, then by name.
func (k ObjectKey) Compare(o ObjectKey) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.App, o.App), cmp.Compare(k.Name, o.Name))
}

// Object is what a user configures beside timers: a document under a name. Package object
// holds all objects in memory.
//
// An Object is never changed once it is shared: a change makes a new one.
type Object struct {
	ObjectKey
	// Version counts every change since the object was created, from 1; it is the ETag.
	Version   uint32
	UpdatedAt int64  // Unix ms
	UpdatedBy string // see WithAuthor
	Body      []byte // JSON; of a sealed object, its sealed form
	// Damaged is set if the stored object cannot be read: then only the key is right. A put
	// replaces such an object as if there were none.
	Damaged *Damage
}

// ObjectPut is an object, and the version in whose place it is stored; 0: none stands.
type ObjectPut struct {
	*Object
	Was uint32
}

// objectVersion is the newest version of the stored form.
const objectVersion = 1

// AppendObject appends the stored form of o to b. It does not contain the key.
func AppendObject(b []byte, o *Object) []byte {
	b = putUint(append(b, objectVersion), uint64(o.Version))
	return putBytes(putString(putInt(b, o.UpdatedAt), o.UpdatedBy), o.Body)
}

// ReadObject reads the object that is stored under a key. One that cannot be read has
// Damaged set. The bytes must not be changed afterwards.
func ReadObject(k ObjectKey, stored []byte) Object {
	r := reader{b: stored}
	r.version("object", objectVersion)
	o := Object{ObjectKey: k, Version: uint32(r.uint()), UpdatedAt: r.int(), UpdatedBy: r.string(), Body: r.bytes()}
	if err := r.end("object"); err != nil {
		return Object{ObjectKey: k, Damaged: &Damage{Row: "the object " + k.String(), Err: err}}
	}
	return o
}

// JudgePut judges a put for a tier: whether it may be made in place of what stands; nil:
// nothing does. done: it is stored already, by the same call that was repeated.
func JudgePut(p ObjectPut, stands *Object) (done bool, err error) {
	if stands == nil || stands.Damaged != nil {
		stands = &Object{}
	}
	if stands.Version == p.Version && stands.UpdatedAt == p.UpdatedAt && string(stands.Body) == string(p.Body) {
		return true, nil
	}
	if stands.Version != p.Was {
		return false, ErrConflict
	}
	return false, nil
}

// JudgeDelete judges a delete of the version was likewise. done: there is nothing to delete.
func JudgeDelete(stands *Object, was uint32) (done bool, err error) {
	switch {
	case stands == nil:
		return true, nil
	case stands.Damaged == nil && stands.Version != was:
		return false, ErrConflict
	}
	return false, nil
}
