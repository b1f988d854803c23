// SPDX-License-Identifier: GPL-2.0-only

// A driver for bbolt; ../driver.h says what drivers do.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// bbolt has no switch: it always gives the hint. There is a second build of
// this program with a bbolt that does not, and that one has "none" here.
var hint = "own"

const (
	minLength = 200 // of a value, bytes
	maxLength = 1800
	head      = 16 // bytes: key and version
	mapBytes  = 1 << 30
	fileName  = "records.bolt"
	batch     = 1000 // entries of the index in a transaction
)

var (
	records  = []byte("records")
	index    = []byte("index")
	db       *bbolt.DB
	reading  *bbolt.Tx
	cursor   *bbolt.Cursor
	writing  *bbolt.Tx
	writable bool
	placed   bool
	at       uint64 // the key at which the cursor is placed
)

func fail(format string, values ...interface{}) {
	name := filepath.Base(os.Args[0])
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, fmt.Sprintf(format, values...))
	os.Exit(1)
}

func must(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func lengthOf(key uint64) int {
	return minLength + int(mix(key)%(maxLength-minLength+1))
}

// wordOf is the word that comes after so many others behind the head of a value.
func wordOf(key, version uint64, number int) uint64 {
	return mix(mix(key) + version + uint64(number))
}

func nameOf(key uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, key)
}

func makeValue(key, version uint64) []byte {
	value := make([]byte, maxLength+8)
	binary.BigEndian.PutUint64(value, key)
	binary.BigEndian.PutUint64(value[8:], version)
	length := lengthOf(key)
	for i := head; i < length; i += 8 {
		binary.LittleEndian.PutUint64(value[i:], wordOf(key, version, (i-head)/8))
	}
	return value[:length]
}

// check returns the key of a record; it touches the first and the last page of the value.
func check(name, value []byte) uint64 {
	if len(name) != 8 {
		fail("a key has a wrong length")
	}
	key := binary.BigEndian.Uint64(name)
	if len(value) == lengthOf(key) && binary.BigEndian.Uint64(value) == key {
		end := len(value) - 1
		word := wordOf(key, binary.BigEndian.Uint64(value[8:]), (end-head)/8)
		if value[end] == byte(word>>(8*(end%8))) {
			return key
		}
	}
	fail("record %d is damaged", key)
	return 0
}

func number(word string) uint64 {
	value, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		fail("'%s' is no number", word)
	}
	return value
}

func bucket(tx *bbolt.Tx) *bbolt.Bucket {
	found := tx.Bucket(records)
	if found == nil {
		fail("the store has no records")
	}
	return found
}

func startReading() {
	if reading == nil {
		var err error
		reading, err = db.Begin(false)
		must(err, "cannot begin")
		cursor = bucket(reading).Cursor()
	}
}

// A write that maps the file anew would wait for the end of all reading.
func stopReading() {
	if reading != nil {
		must(reading.Rollback(), "cannot end reading")
		reading = nil
	}
}

func open(path string, mode string) {
	options := *bbolt.DefaultOptions
	writable = mode != "ro"
	if writable {
		options.NoSync = true
		options.InitialMmapSize = mapBytes
	} else {
		options.ReadOnly = true
	}
	if _, err := os.Stat(path); (err == nil) == (mode == "create") {
		fail("%s is there already, or not there", path)
	}
	var err error
	db, err = bbolt.Open(path, 0644, &options)
	must(err, path)
	if mode == "create" {
		must(db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket(records)
			return err
		}), "cannot make the bucket")
	}
}

func place(name, value []byte, otherwise string, values ...interface{}) {
	if name == nil {
		fail(otherwise, values...)
	}
	at = check(name, value)
	placed = true
}

func goOn(move func() ([]byte, []byte), up bool, count uint64) {
	if !placed {
		fail("the cursor is nowhere")
	}
	for ; count > 0; count-- {
		from := at
		name, value := move()
		place(name, value, "record %d is the last on this way", from)
		if at == from || (at > from) != up {
			fail("record %d is in the wrong place", at)
		}
	}
}

func newFile(directory string) string {
	must(os.Mkdir(directory, 0755), "cannot make the directory")
	return filepath.Join(directory, fileName)
}

func compact(path string) {
	options := *bbolt.DefaultOptions
	options.NoSync = true
	to, err := bbolt.Open(path, 0644, &options)
	must(err, path)
	// The size of a transaction is that of bbolt's own command.
	must(bbolt.Compact(to, db, 65536), "cannot compact")
	must(to.Close(), path)
}

func checkAll() {
	must(db.View(func(tx *bbolt.Tx) error {
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		return first
	}), "the check finds")
}

// makeIndex uses many transactions: bbolt keeps all that one inserts in sorted slices.
func makeIndex() {
	var next []byte
	for more := true; more; {
		must(db.Update(func(tx *bbolt.Tx) error {
			entries, err := tx.CreateBucketIfNotExists(index)
			if err != nil {
				return err
			}
			from := bucket(tx).Cursor()
			name, value := from.Seek(next)
			for i := 0; i < batch && name != nil; i++ {
				if len(value) < head+8 {
					return errors.New("a value is too short")
				}
				word := append([]byte{}, value[head:head+8]...)
				if err := entries.Put(append(word, name...), name); err != nil {
					return err
				}
				name, value = from.Next()
			}
			next = append([]byte{}, name...)
			more = name != nil
			return nil
		}), "cannot make the index")
	}
}

func put(key, version uint64) {
	var err error
	if writing == nil {
		writing, err = db.Begin(true)
		must(err, "cannot begin")
	}
	must(bucket(writing).Put(nameOf(key), makeValue(key, version)), "cannot put")
}

func commit() {
	if writing == nil {
		fail("there is nothing to commit")
	}
	must(writing.Commit(), "cannot commit")
	writing = nil
}

func closeStore() {
	stopReading()
	must(db.Close(), "cannot close")
	db = nil
}

// arguments has the number of arguments of each operation.
var arguments = map[string]int{
	"create": 0, "open": 1, "get": 1, "seek": 1, "first": 0, "last": 0, "next": 1, "prev": 1, "put": 2,
	"commit": 0, "compact": 1, "copy": 1, "check": 0, "index": 0, "close": 0,
}

func execute(path string, words []string) {
	name, words := words[0], words[1:]
	if count, known := arguments[name]; !known {
		fail("no operation '%s'", name)
	} else if count != len(words) {
		fail("'%s' takes %d arguments", name, count)
	}
	writes := name == "put" || name == "commit"
	switch {
	case db != nil && (name == "create" || name == "open"):
		fail("'%s', but the store is open", name)
	case db == nil && name != "create" && name != "open":
		fail("'%s', but the store is not open", name)
	case !writable && (writes || name == "index"):
		fail("'%s', but the store is open for reading", name)
	case writing != nil && !writes:
		fail("'%s' before a commit", name)
	}
	switch name {
	case "get", "seek", "first", "last", "next", "prev":
		startReading()
	default:
		stopReading()
		placed = false
	}
	switch name {
	case "create":
		open(path, name)
	case "open":
		if words[0] != "ro" && words[0] != "rw" {
			fail("a store is opened 'ro' or 'rw', not '%s'", words[0])
		}
		open(path, words[0])
	case "get":
		wanted := nameOf(number(words[0]))
		value := bucket(reading).Get(wanted)
		if value == nil {
			fail("record %s is missing", words[0])
		}
		check(wanted, value)
	case "seek":
		wanted := number(words[0])
		found, value := cursor.Seek(nameOf(wanted))
		place(found, value, "there is no record from %d on", wanted)
		if at < wanted {
			fail("record %d is in the wrong place", at)
		}
	case "first":
		found, value := cursor.First()
		place(found, value, "there is no record")
	case "last":
		found, value := cursor.Last()
		place(found, value, "there is no record")
	case "next":
		goOn(cursor.Next, true, number(words[0]))
	case "prev":
		goOn(cursor.Prev, false, number(words[0]))
	case "put":
		put(number(words[0]), number(words[1]))
	case "commit":
		commit()
	case "compact":
		compact(newFile(words[0]))
	case "copy":
		must(db.View(func(tx *bbolt.Tx) error {
			return tx.CopyFile(newFile(words[0]), 0644)
		}), "cannot copy")
	case "check":
		checkAll()
	case "index":
		makeIndex()
	case "close":
		closeStore()
	}
}

func main() {
	// Guests have one processor and little memory.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(20)
	// bbolt panics, or faults, where a file is damaged.
	debug.SetPanicOnFault(true)
	defer func() {
		if reason := recover(); reason != nil {
			fail("%v", reason)
		}
	}()
	if len(os.Args) != 3 || (os.Args[2] != "none" && os.Args[2] != "own") {
		fail("usage: DATA-DIRECTORY none|own")
	}
	if os.Args[2] != hint {
		fail("this is the build for the hint '%s'", hint)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		execute(filepath.Join(os.Args[1], fileName), strings.Split(lines.Text(), " "))
	}
	must(lines.Err(), "cannot read operations")
	if writing != nil {
		fail("the operations end before a commit")
	}
	if db != nil {
		closeStore()
	}
}
