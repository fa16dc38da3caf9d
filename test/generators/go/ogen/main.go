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
	report := map[string]any{}

	var participant uuid.UUID
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

	var names []string
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
	report["names"] = names

	missing := must(client.GetParticipant(ctx, muster.GetParticipantParams{Participant: uuid.New()}))
	report["not_found"] = missing.(*muster.NotFoundHeaders).Response.Message
	invalid := must(client.CreateParticipant(ctx, &muster.ParticipantCreate{
		FullName: "Ada",
		Email:    muster.NewOptNilString("ada@example.com"),
	}, muster.CreateParticipantParams{}))
	report["invalid"] = invalid.(*muster.ValidationFailedHeaders).Response.Errors

	must(client.CreatePayment(ctx, &muster.PaymentCreate{
		ParticipantID: participant,
		AmountMinor:   3_000_000_000,
		Currency:      muster.CurrencyVND,
	}, muster.CreatePaymentParams{}))
	payments := must(client.ListPayments(ctx, muster.ListPaymentsParams{}))
	report["amount_minor"] = payments.(*muster.PaymentListHeaders).Response.Data[0].AmountMinor

	job := must(client.CreateJob(ctx, &muster.JobCreate{
		Title: "Interpreter",
		ScreeningQuestions: []muster.ScreeningQuestionInput{
			muster.NewNumberQuestionScreeningQuestionInput(muster.NumberQuestion{
				Key:         "years",
				Label:       "Years?",
				Requirement: muster.ScreeningRequirementMustHave,
				Operator:    muster.NumberOperatorAtLeast,
				Expected:    5,
			}),
			muster.NewOneOfQuestionScreeningQuestionInput(muster.OneOfQuestion{
				Key:         "city",
				Label:       "City?",
				Requirement: muster.ScreeningRequirementNiceToHave,
				Operator:    muster.OneOfOperatorOneOf,
				Expected: []muster.AnswerValue{
					muster.NewStringAnswerValue("Lyon"),
					muster.NewStringAnswerValue("Paris"),
				},
			}),
		},
	}, muster.CreateJobParams{}))
	report["questions"] = job.(*muster.JobCreatedHeaders).Response.ScreeningQuestions

	var types []muster.EventType
	events := must(client.ListEvents(ctx, muster.ListEventsParams{}))
	for _, event := range events.(*muster.EventListHeaders).Response.Data {
		types = append(types, event.Type)
	}
	report["event_types"] = types

	proxy := newClient(os.Getenv("MUSTER_PROXY_URL"))
	if changed, err := proxy.ListParticipants(ctx, muster.ListParticipantsParams{}); err != nil {
		report["new_status"] = map[string]string{"error": err.Error()}
	} else {
		report["new_status"] = changed.(*muster.ParticipantListHeaders).Response.Data[0].Status
	}

	if changed, err := proxy.ListEvents(ctx, muster.ListEventsParams{}); err != nil {
		report["new_event_type"] = map[string]string{"error": err.Error()}
	} else {
		report["new_event_type"] = changed.(*muster.EventListHeaders).Response.Data[0].Type
	}

	for {
		response := must(client.ListParticipants(ctx, muster.ListParticipantsParams{}))
		limited, ok := response.(*muster.TooManyRequestsHeaders)
		if !ok {
			continue
		}
		report["too_many_requests"] = limited.Response.Message
		report["headers"] = map[string]any{
			"X-RateLimit-Limit":     limited.XRateLimitLimit,
			"X-RateLimit-Remaining": limited.XRateLimitRemaining,
			"X-RateLimit-Reset":     limited.XRateLimitReset,
			"RateLimit":             limited.RateLimit,
			"RateLimit-Policy":      limited.RateLimitPolicy,
			"Retry-After":           limited.RetryAfter,
		}
		break
	}
	fmt.Println(string(must(json.Marshal(report))))
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
