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

// In production: a unique column in your database.
var processed sync.Map

func isGenuine(body []byte, signature string) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature))
}

func receive(writer http.ResponseWriter, request *http.Request) {
	// The bytes as they came: JSON that is parsed and written again may differ.
	body, err := io.ReadAll(request.Body)
	if err != nil || !isGenuine(body, request.Header.Get("X-Service-Signature")) {
		writer.WriteHeader(http.StatusForbidden)
		return
	}
	var received delivery
	if err := json.Unmarshal(body, &received); err != nil {
		writer.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, isRepeat := processed.LoadOrStore(received.ID, true); !isRepeat {
		// In production: put it into a queue.
		fmt.Println(received.EventType, received.Resource.ID)
	}
	writer.WriteHeader(http.StatusNoContent)
}

func main() {
	if len(secret) == 0 { // anybody can sign with an empty one
		log.Fatal("Set MUSTER_WEBHOOK_SECRET")
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(receive)))
}
