// Calls the API with a client that ogen generated, and reports what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"generators/ogen/muster"

	"github.com/google/uuid"
)

func main() {
	ctx := context.Background()
	client := newClient(os.Getenv("MUSTER_URL"))
	proxy := newClient(os.Getenv("MUSTER_PROXY_URL"))
	participant := createParticipants(ctx, client)
	report := map[string]any{
		"names":          listNames(ctx, client),
		"not_found":      readMissing(ctx, client),
		"invalid":        createTwin(ctx, client),
		"amount_minor":   pay(ctx, client, participant),
		"questions":      ask(ctx, client),
		"event_types":    listEventTypes(ctx, client),
		"new_status":     readNewStatus(ctx, proxy),
		"new_event_type": readNewEventType(ctx, proxy),
	}
	limited := reachLimit(ctx, client)
	report["too_many_requests"] = limited.Response.Message
	report["headers"] = map[string]any{
		"X-RateLimit-Limit":     limited.XRateLimitLimit,
		"X-RateLimit-Remaining": limited.XRateLimitRemaining,
		"X-RateLimit-Reset":     limited.XRateLimitReset,
		"RateLimit":             limited.RateLimit,
		"RateLimit-Policy":      limited.RateLimitPolicy,
		"Retry-After":           limited.RetryAfter,
	}
	fmt.Println(string(must(json.Marshal(report))))
}

// createParticipants creates three participants and returns the ID of one of them.
func createParticipants(ctx context.Context, client *muster.Client) (participant uuid.UUID) {
	for name, status := range map[string]muster.NewParticipantStatus{
		"Ada":   muster.NewParticipantStatusActive,
		"Grace": muster.NewParticipantStatusInactive,
		"Alan":  muster.NewParticipantStatusArchived,
	} {
		created := must(client.CreateParticipant(ctx, &muster.ParticipantCreate{
			FullName: name,
			Email:    muster.NewOptNilString(name + "@example.com"),
			Status:   muster.NewOptNewParticipantStatus(status),
		}, muster.CreateParticipantParams{}))
		participant = uuid.UUID(created.(*muster.ParticipantCreatedHeaders).Response.ID)
	}
	return participant
}

func listNames(ctx context.Context, client *muster.Client) (names []string) {
	for number, last := int32(1), int32(1); number <= last; number++ {
		response := must(client.ListParticipants(ctx, muster.ListParticipantsParams{
			PageNumber:   muster.NewOptInt32(number),
			PageSize:     muster.NewOptInt32(1),
			FilterStatus: []muster.ParticipantStatus{muster.ParticipantStatusActive, muster.ParticipantStatusInactive},
			Sort:         []muster.ParticipantSort{muster.ParticipantSortFullName},
		}))
		page := response.(*muster.ParticipantListHeaders).Response
		names = append(names, page.Data[0].FullName)
		last = page.Meta.LastPage
	}
	return names
}

func readMissing(ctx context.Context, client *muster.Client) any {
	missing := must(client.GetParticipant(ctx, muster.GetParticipantParams{Participant: uuid.New()}))
	return missing.(*muster.NotFoundHeaders).Response.Message
}

// createTwin creates a participant with an email that another one has.
func createTwin(ctx context.Context, client *muster.Client) any {
	invalid := must(client.CreateParticipant(ctx, &muster.ParticipantCreate{
		FullName: "Ada",
		Email:    muster.NewOptNilString("ada@example.com"),
	}, muster.CreateParticipantParams{}))
	return invalid.(*muster.ParticipantInvalidHeaders).Response.Errors
}

func pay(ctx context.Context, client *muster.Client, participant uuid.UUID) any {
	must(client.CreatePayment(ctx, &muster.PaymentCreate{
		ParticipantID: participant,
		AmountMinor:   3_000_000_000,
		Currency:      muster.CurrencyVND,
	}, muster.CreatePaymentParams{}))
	payments := must(client.ListPayments(ctx, muster.ListPaymentsParams{}))
	return payments.(*muster.PaymentListHeaders).Response.Data[0].AmountMinor
}

func ask(ctx context.Context, client *muster.Client) any {
	years := muster.NewNumberQuestionScreeningQuestionInput(muster.NumberQuestion{
		Key:         "years",
		Label:       "Years?",
		Requirement: muster.ScreeningRequirementMustHave,
		Operator:    muster.NumberOperatorAtLeast,
		Expected:    5,
	})
	city := muster.NewOneOfQuestionScreeningQuestionInput(muster.OneOfQuestion{
		Key:         "city",
		Label:       "City?",
		Requirement: muster.ScreeningRequirementNiceToHave,
		Operator:    muster.OneOfOperatorOneOf,
		Expected: []muster.AnswerValue{
			muster.NewStringAnswerValue("Lyon"),
			muster.NewStringAnswerValue("Paris"),
		},
	})
	job := must(client.CreateJob(ctx, &muster.JobCreate{
		Title:              "Interpreter",
		ScreeningQuestions: []muster.ScreeningQuestionInput{years, city},
	}, muster.CreateJobParams{}))
	return job.(*muster.JobCreatedHeaders).Response.ScreeningQuestions
}

func listEventTypes(ctx context.Context, client *muster.Client) (types []muster.EventType) {
	events := must(client.ListEvents(ctx, muster.ListEventsParams{}))
	for _, event := range events.(*muster.EventListHeaders).Response.Data {
		types = append(types, event.Type)
	}
	return types
}

func readNewStatus(ctx context.Context, proxy *muster.Client) any {
	participants, err := proxy.ListParticipants(ctx, muster.ListParticipantsParams{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return participants.(*muster.ParticipantListHeaders).Response.Data[0].Status
}

func readNewEventType(ctx context.Context, proxy *muster.Client) any {
	events, err := proxy.ListEvents(ctx, muster.ListEventsParams{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return events.(*muster.EventListHeaders).Response.Data[0].Type
}

func reachLimit(ctx context.Context, client *muster.Client) *muster.TooManyRequestsHeaders {
	for {
		response := must(client.ListParticipants(ctx, muster.ListParticipantsParams{}))
		if limited, ok := response.(*muster.TooManyRequestsHeaders); ok {
			return limited
		}
	}
}

// apiKey implements muster.SecuritySource.
type apiKey string

func (key apiKey) ApiKey(context.Context, muster.OperationName) (muster.ApiKey, error) {
	return muster.ApiKey{Token: string(key)}, nil
}

func newClient(url string) *muster.Client {
	return must(muster.NewClient(url, apiKey(os.Getenv("MUSTER_API_KEY"))))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
