// Package batch makes one call of many tasks that are due at once.
package batch
