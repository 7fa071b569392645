// Package bench is the command that loads a server from outside and judges what arrives.
package bench
