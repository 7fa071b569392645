//go:build race

package local

import "flag"

func init() {
	powerChanges, powerStep, errorStep, bitFlips, capTasks = 25, 10, 17, 24, 700
	if err := flag.Set("rapid.checks", "40"); err != nil { // for TestModel
		panic(err)
	}
}
