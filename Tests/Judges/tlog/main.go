// Judges an exported audit log and single proofs by Go's transparency log library, which knows nothing of this project.
//
//	tlog export DIR VKEY     every tree again from the records; every checkpoint's signature, root and consistency
//	tlog proof FILE VKEY     one C2SP tlog-proof, by itself
package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if len(os.Args) != 4 {
		fail(errors.New("usage: tlog export DIR VKEY | tlog proof FILE VKEY"))
	}
	key, err := readKey(os.Args[3])
	fail(err)
	switch os.Args[1] {
	case "export":
		fail(judgeExport(os.Args[2], key))
	case "proof":
		fail(judgeProof(os.Args[2], key))
	default:
		fail(errors.New("export or proof"))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A log key: its name and the public key, under which every tree of the log signs by its own name.
type logKey struct {
	name   string
	public ed25519.PublicKey
}

func readKey(text string) (logKey, error) {
	if _, err := note.NewVerifier(text); err != nil {
		return logKey{}, err
	}
	parts := strings.SplitN(text, "+", 3)
	bytes, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return logKey{}, err
	}
	return logKey{parts[0], ed25519.PublicKey(bytes[1:])}, nil
}

type head struct {
	origin string
	size   int64
	root   tlog.Hash
}

func (key logKey) open(signed []byte) (head, error) {
	origin, _, found := strings.Cut(string(signed), "\n")
	if !found || (origin != key.name && !strings.HasPrefix(origin, key.name+"/")) {
		return head{}, fmt.Errorf("%q is no tree of %s", origin, key.name)
	}
	text, err := note.NewEd25519VerifierKey(origin, key.public)
	if err != nil {
		return head{}, err
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		return head{}, err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return head{}, err
	}
	return readHead(opened.Text)
}

func readHead(text string) (head, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return head{}, fmt.Errorf("a checkpoint has three lines, and not %q", text)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return head{}, err
	}
	root, err := tlog.ParseHash(lines[2])
	return head{lines[0], size, root}, err
}

// A tree as Go's library keeps it: the stored hashes.
type tree struct {
	size   int64
	hashes []tlog.Hash
}

func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	found := make([]tlog.Hash, len(indexes))
	for place, index := range indexes {
		found[place] = t.hashes[index]
	}
	return found, nil
}

func (t *tree) add(data []byte) error {
	hashes, err := tlog.StoredHashes(t.size, data, t)
	t.hashes = append(t.hashes, hashes...)
	t.size++
	return err
}

// Root, and that the tree of the earlier size is its beginning.
func (t *tree) check(h head, earlier int64) error {
	root, err := tlog.TreeHash(h.size, t)
	if err != nil {
		return err
	}
	if root != h.root {
		return fmt.Errorf("%s: another root at size %d", h.origin, h.size)
	}
	if earlier == 0 || earlier > h.size {
		return nil
	}
	before, err := tlog.TreeHash(earlier, t)
	if err != nil {
		return err
	}
	proof, err := tlog.ProveTree(h.size, earlier, t)
	if err != nil {
		return err
	}
	return tlog.CheckTree(proof, h.size, h.root, earlier, before)
}

// The parts of a record in its one binary form.
type record struct {
	headers map[string]string
	value   []byte
}

type reader struct {
	bytes []byte
	err   error
}

func (r *reader) take(count int) []byte {
	if r.err != nil || count < 0 || count > len(r.bytes) {
		r.err = errors.New("a record ends too early")
		return nil
	}
	taken := r.bytes[:count]
	r.bytes = r.bytes[count:]
	return taken
}

func (r *reader) number() int32 {
	if bytes := r.take(4); bytes != nil {
		return int32(binary.BigEndian.Uint32(bytes))
	}
	return 0
}

func (r *reader) text() []byte {
	if count := r.number(); count >= 0 {
		return r.take(int(count))
	}
	return nil
}

func readRecord(data []byte) (record, error) {
	r := &reader{bytes: data}
	r.take(8)
	r.text()
	found := record{headers: map[string]string{}}
	for count := r.number(); count > 0 && r.err == nil; count-- {
		name := string(r.text())
		found.headers[name] = string(r.text())
	}
	found.value = r.text()
	if r.err == nil && len(r.bytes) > 0 {
		r.err = errors.New("a record has bytes behind it")
	}
	return found, r.err
}

// Every record of a file: offset, length, record.
func forEach(path string, body func([]byte) error) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	r := &reader{bytes: content}
	for len(r.bytes) > 0 {
		r.take(8)
		data := r.take(int(r.number()))
		if r.err != nil {
			return fmt.Errorf("%s: %w", path, r.err)
		}
		if err := body(data); err != nil {
			return err
		}
	}
	return nil
}

type checkpointed struct {
	Scope string   `json:"scope"`
	Added []string `json:"added"`
	Note  string   `json:"note"`
}

func judgeExport(folder string, key logKey) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.records"))
	if err != nil {
		return err
	}
	heads := map[string][]head{}
	// By name: a store that began anew began a summary of its own.
	summaries, summed, notes := map[string]*tree{}, int64(0), 0
	for _, path := range paths {
		if !strings.Contains(filepath.Base(path), "audit-") {
			continue
		}
		err := forEach(path, func(data []byte) error {
			found, err := readRecord(data)
			if err != nil || found.headers["ce_type"] != "audit.checkpointed.v1" {
				return err
			}
			var event checkpointed
			if err := json.Unmarshal(found.value, &event); err != nil {
				return err
			}
			h, err := key.open([]byte(event.Note))
			if err != nil {
				return err
			}
			notes++
			if event.Scope == "partition" {
				heads[h.origin] = append(heads[h.origin], h)
				return nil
			}
			summary := summaries[h.origin]
			if summary == nil {
				summary = &tree{}
				summaries[h.origin] = summary
			}
			earlier := summary.size
			if h.size == earlier {
				return summary.check(h, 0) // published again after a crash
			}
			for _, text := range event.Added {
				if err := summary.add([]byte(text)); err != nil {
					return err
				}
				leaf, err := readHead(text)
				if err != nil {
					return err
				}
				heads[leaf.origin] = append(heads[leaf.origin], leaf)
			}
			summed += summary.size - earlier
			if h.size != summary.size {
				return fmt.Errorf("%s signs for %d of %d checkpoints", h.origin, h.size, summary.size)
			}
			return summary.check(h, earlier)
		})
		if err != nil {
			return err
		}
	}
	leaves := int64(0)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".records")
		mark := strings.LastIndex(name, "-")
		if strings.Contains(name, "audit-") {
			continue
		}
		t := &tree{}
		if err := forEach(path, t.add); err != nil {
			return err
		}
		leaves += t.size
		claims := heads[key.name+"/"+name[:mark]+"/"+name[mark+1:]]
		sort.SliceStable(claims, func(a, b int) bool { return claims[a].size < claims[b].size })
		earlier := int64(0)
		for _, h := range claims {
			if h.size > t.size {
				return fmt.Errorf("%s signs for %d records of %d", h.origin, h.size, t.size)
			}
			if err := t.check(h, earlier); err != nil {
				return err
			}
			earlier = h.size
		}
		if earlier != t.size {
			return fmt.Errorf("%s: %d of %d records are signed for", name, earlier, t.size)
		}
	}
	if summed == 0 || leaves == 0 {
		return errors.New("nothing was there to judge")
	}
	fmt.Printf("%d records, %d notes, summary of %d\n", leaves, notes, summed)
	return nil
}

func judgeProof(path string, key logKey) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, signed, found := bytes.Cut(content, []byte("\n\n"))
	lines := strings.Split(string(before), "\n")
	if !found || len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return errors.New("no tlog-proof")
	}
	data, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(lines[1], "extra "))
	if err != nil {
		return err
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64)
	if err != nil {
		return err
	}
	var proof tlog.RecordProof
	for _, line := range lines[3:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return err
		}
		proof = append(proof, hash)
	}
	h, err := key.open(signed)
	if err != nil {
		return err
	}
	if err := tlog.CheckRecord(proof, h.size, h.root, index, tlog.RecordHash(data)); err != nil {
		return err
	}
	fmt.Printf("record %d of %s, of %d\n", index, h.origin, h.size)
	return nil
}
