// SPDX-License-Identifier: Apache-2.0

// klauspost/reedsolomon for `weft bench storage --klauspost FILE`: one goroutine, Cauchy matrix, as
// a shared library. It is not part of weft's build. Where Go and the module are available:
//
//	go mod init peer && go get github.com/klauspost/reedsolomon
//	go build -buildmode=c-shared -o libweft-klauspost.so
package main

// #include <stddef.h>
// #include <stdint.h>
// #include <stdlib.h>
import "C"

import (
	"runtime/cgo"
	"runtime/debug"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

const module = "github.com/klauspost/reedsolomon"

type coder struct {
	codec   reedsolomon.Encoder
	k       int
	shards  [][]byte
	present [][]byte // those lost have length 0: the library fills them in place
	lost    []int
	delta   []byte
}

//export weft_klauspost_new
func weft_klauspost_new(k, m, bytes C.size_t, shards **C.uint8_t, lost *C.uint8_t,
	lostCount C.size_t, delta *C.uint8_t) C.uintptr_t {
	codec, err := reedsolomon.New(int(k), int(m), reedsolomon.WithCauchyMatrix(),
		reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return 0
	}
	n := int(bytes)
	c := &coder{codec: codec, k: int(k)}
	for _, shard := range unsafe.Slice(shards, int(k+m)) {
		c.shards = append(c.shards, unsafe.Slice((*byte)(unsafe.Pointer(shard)), n))
	}
	c.present = append([][]byte{}, c.shards...)
	for _, id := range unsafe.Slice((*byte)(unsafe.Pointer(lost)), int(lostCount)) {
		c.lost = append(c.lost, int(id))
	}
	if delta != nil {
		c.delta = unsafe.Slice((*byte)(unsafe.Pointer(delta)), n)
	}
	return C.uintptr_t(cgo.NewHandle(c))
}

// weft_klauspost_run: 0 encodes, 1 recovers the lost data shards, 2 adds shard 0's delta to the
// parity.
//
//export weft_klauspost_run
func weft_klauspost_run(handle C.uintptr_t, operation C.int) C.int {
	c := cgo.Handle(handle).Value().(*coder)
	var err error
	switch operation {
	case 0:
		err = c.codec.Encode(c.shards)
	case 1:
		for _, id := range c.lost {
			c.present[id] = c.shards[id][:0]
		}
		err = c.codec.ReconstructData(c.present)
	case 2:
		err = c.codec.EncodeIdx(c.delta, 0, c.shards[c.k:])
	default:
		return 2
	}
	if err != nil {
		return 1
	}
	return 0
}

//export weft_klauspost_free
func weft_klauspost_free(handle C.uintptr_t) { cgo.Handle(handle).Delete() }

//export weft_klauspost_version
func weft_klauspost_version() *C.char {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return C.CString(dep.Version)
			}
		}
	}
	return C.CString("")
}

func main() {}
