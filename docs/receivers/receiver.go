// Go 1.22 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 go run receiver.go
package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxBodyBytes = 1 << 20
	tolerance    = 5 * time.Minute
)

type delivery struct {
	ID        string `json:"id"`
	EventType string `json:"event_type"`
	Resource  struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"resource"`
}

type receiver struct {
	// secrets has two elements while you rotate the secret.
	secrets []string
	// processedIDs is a unique column of your database in production.
	processedIDs sync.Map
}

func sign(key []byte, content ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range content {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// isSigned checks both signatures: X-Service-Signature signs the body.
// webhook-signature signs ID, time and body.
func isSigned(secret string, header http.Header, body []byte) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	prefix := header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "."
	signature := hex.EncodeToString(sign([]byte(secret), body))
	timedSignature := "v1," + base64.StdEncoding.EncodeToString(sign(key, []byte(prefix), body))
	return hmac.Equal([]byte(header.Get("X-Service-Signature")), []byte(signature)) &&
		hmac.Equal([]byte(header.Get("webhook-signature")), []byte(timedSignature))
}

// isRecent reports whether the delivery is recent: an older one may be a replay.
func isRecent(header http.Header) bool {
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	return err == nil && time.Since(time.Unix(seconds, 0)).Abs() <= tolerance
}

func (rc *receiver) isAuthentic(header http.Header, body []byte) bool {
	for _, secret := range rc.secrets {
		if isSigned(secret, header, body) {
			return isRecent(header)
		}
	}
	return false
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Verify the raw bytes: JSON that was parsed and serialized again can differ.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !rc.isAuthentic(r.Header, body) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, seen := rc.processedIDs.LoadOrStore(d.ID, true); !seen {
		// In production, enqueue the delivery here.
		fmt.Println(d.EventType, d.Resource.ID)
	}
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	rc := &receiver{}
	// Ignore empty secrets: anyone can sign with them.
	for _, name := range []string{"MUSTER_WEBHOOK_SECRET", "MUSTER_WEBHOOK_NEXT_SECRET"} {
		if secret := os.Getenv(name); secret != "" {
			rc.secrets = append(rc.secrets, secret)
		}
	}
	if len(rc.secrets) == 0 {
		log.Fatal("Set MUSTER_WEBHOOK_SECRET")
	}
	mux := http.NewServeMux()
	mux.Handle("POST /", rc) // other methods get 405
	server := &http.Server{
		Addr:        "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "4000"),
		Handler:     mux,
		ReadTimeout: 10 * time.Second, // ends uploads that a sender does not finish
	}
	log.Fatal(server.ListenAndServe())
}
