// Creates or updates a participant for each entry of people.json, by `external_id`.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

const maxItems = 100

type result struct {
	Status  int
	Message string
	Errors  map[string][]string
}

func post(path string, body any) (response struct{ Results []result }) {
	data, err := json.Marshal(body)
	if err != nil {
		log.Fatal(err)
	}
	// The repeats of a batch have the same key, so nothing is done twice.
	key := rand.Text()
	for {
		request, err := http.NewRequest("POST", os.Getenv("MUSTER_URL")+"/public/v1"+path, bytes.NewReader(data))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("MUSTER_API_KEY"))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", key)
		received, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(received.Body)
		received.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if received.StatusCode == 200 {
			if err := json.Unmarshal(text, &response); err != nil {
				log.Fatal(err)
			}
			return response
		}
		seconds, _ := strconv.Atoi(received.Header.Get("Retry-After"))
		if (received.StatusCode != 429 && received.StatusCode != 503) || seconds == 0 {
			log.Fatalf("%s: %s", received.Status, text)
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func main() {
	text, err := os.ReadFile("people.json")
	if err != nil {
		log.Fatal(err)
	}
	var people []map[string]any
	if err := json.Unmarshal(text, &people); err != nil {
		log.Fatal(err)
	}
	created, updated, refused := 0, 0, 0
	for start := 0; start < len(people); start += maxItems {
		part := people[start:min(start+maxItems, len(people))]
		items := []map[string]any{}
		for _, data := range part {
			items = append(items, map[string]any{"action": "upsert", "data": data})
		}
		for index, result := range post("/participants/batch", map[string]any{"items": items}).Results {
			switch result.Status {
			case 201:
				created++
			case 200:
				updated++
			default:
				refused++
				fmt.Fprintln(os.Stderr, part[index]["external_id"], result.Message, result.Errors)
			}
		}
	}
	fmt.Printf("%d created, %d updated, %d refused.\n", created, updated, refused)
	if refused > 0 {
		os.Exit(1)
	}
}
