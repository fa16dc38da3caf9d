// Go 1.19 or newer:  MUSTER_WEBHOOK_SECRET=whsec_… PORT=4000 go run receiver.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
)

type delivery struct {
	ID        string `json:"id"`
	EventType string `json:"event_type"`
	Resource  struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"resource"`
	Data json.RawMessage `json:"data"`
}

var secret = []byte(os.Getenv("MUSTER_WEBHOOK_SECRET"))

// In production, use a unique column in your database.
var processed sync.Map

func validSignature(body []byte, signature string) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature))
}

func handleWebhook(w http.ResponseWriter, r *http.Request) {
	// Verify the raw bytes: JSON that was parsed and serialized again can differ.
	body, err := io.ReadAll(r.Body)
	if err != nil || !validSignature(body, r.Header.Get("X-Service-Signature")) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, seen := processed.LoadOrStore(d.ID, true); !seen {
		// In production, enqueue the delivery here.
		fmt.Println(d.EventType, d.Resource.ID)
	}
	w.WriteHeader(http.StatusNoContent)
}

func main() {
	if len(secret) == 0 { // anyone can sign with an empty secret
		log.Fatal("Set MUSTER_WEBHOOK_SECRET")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(handleWebhook)))
}
