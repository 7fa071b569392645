//go:build cgo && linux

package machine

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void few_arenas(void) { mallopt(M_ARENA_MAX, 2); }
#else
static void few_arenas(void) {}
#endif
*/
import "C"

// fewArenas has malloc, by which Pebble takes its memory, divide what it gets among two arenas.
// By default each of eight threads for each core has one of its own: in 512 MiB ten of them were
// 50 MB after a start, and 94 MB after ten minutes of 10,000 creates a second.
func fewArenas() { C.few_arenas() }
