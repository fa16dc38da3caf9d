/** The contract that the tests of `diff` edit. */
export const OPENAPI = `openapi: 3.0.3
info: { title: Notes, version: 1.0.0 }
security: [{ apiKey: [] }]
x-rate-limit: { limit: 60, window_seconds: 60 }
x-emitted-by-system: [note.lost]
paths:
  /notes:
    get:
      operationId: listNotes
      parameters:
        - { name: page, in: query, schema: { type: integer, minimum: 1, maximum: 9, default: 1 } }
        - { name: ids, in: query, style: form, explode: false, schema: { type: array, items: { type: string } }, deprecated: true, x-deprecated-since: '2026-01-01', x-sunset: '2027-06-01' }
        - { name: If-None-Match, in: header, schema: { type: string } }
      responses:
        '200':
          description: Notes.
          headers:
            ETag: { required: true, schema: { type: string } }
            X-Hint: { schema: { type: string } }
          content:
            application/json:
              schema: { $ref: '#/components/schemas/Note' }
        '404': { description: None. }
    post:
      operationId: createNote
      x-emits: [note.created]
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [title]
              additionalProperties: false
              properties:
                title: { type: string, minLength: 2, maxLength: 20, pattern: '^x' }
                colour: { type: string, enum: [red, green] }
                size: { type: integer }
                tags: { type: array, items: { type: string }, minItems: 1, maxItems: 5 }
                meta:
                  type: object
                  properties:
                    old: { type: string }
                owner:
                  oneOf:
                    - { $ref: '#/components/schemas/Person' }
                    - { $ref: '#/components/schemas/Team' }
      responses:
        '201': { description: Done. }
  /notes/{note}:
    get:
      operationId: getNote
      parameters:
        - { name: note, in: path, required: true, schema: { type: string } }
      responses:
        '200':
          description: A note.
          content:
            application/json:
              schema: { $ref: '#/components/schemas/Note' }
  /old:
    get:
      operationId: getOld
      deprecated: true
      x-deprecated-since: '2026-01-01'
      x-sunset: '2026-06-01'
      responses:
        '204': { description: Nothing. }
  /mixed:
    get:
      operationId: getMixed
      deprecated: true
      x-deprecated-since: '2026-01-01'
      x-sunset: '2026-06-01'
      responses:
        '204': { description: Nothing. }
    post:
      operationId: createMixed
      responses:
        '204': { description: Nothing. }
components:
  securitySchemes:
    apiKey: { type: http, scheme: bearer }
  schemas:
    Person: { type: object, properties: { name: { type: string } } }
    Team: { type: object, properties: { members: { type: integer } } }
    Note:
      type: object
      required: [title, count]
      properties:
        title: { type: string, minLength: 2, maxLength: 20 }
        count: { type: integer, minimum: 0, maximum: 9 }
        colour: { type: string, enum: [red, green] }
        state: { type: string, enum: [open], x-extensible-enum: true }
        due_at: { type: string, format: date-time, nullable: true }
        tags: { type: array, items: { type: string }, uniqueItems: true }
        note: { type: string, deprecated: true, x-sunset: '2026-06-01' }
        maker:
          oneOf:
            - { type: object, required: [kind], properties: { kind: { type: string, enum: [person] } } }
            - { type: object, required: [kind], properties: { kind: { type: string, enum: [team] } } }
        owner:
          oneOf:
            - { $ref: '#/components/schemas/Person' }
            - { $ref: '#/components/schemas/Team' }
        parent: { $ref: '#/components/schemas/Note' }
`
/** A message of asyncapi.yaml. */
export const event = (name: string, type: string, deprecation = ''): string => `    ${name}:
      name: ${type}
${deprecation}      headers: { type: object, properties: { x-signature: { type: string } } }
      payload: { $ref: '#/components/schemas/${name}' }
      examples: [{ payload: {} }]
`
const payload = (name: string, type: string): string => `    ${name}:
      type: object
      required: [event_type, resource, data]
      properties:
        event_type: { type: string, const: ${type} }
        resource: { type: object, properties: { type: { type: string, const: note } } }
        data: { type: object, required: [colour], properties: { colour: { type: string, enum: [red] }, shade: { type: integer, multipleOf: 3 } } }
`
export const LOST_DEPRECATION =
  "      x-deprecated-since: '2026-01-01'\n      x-sunset: '2026-06-01'\n"

export const ASYNCAPI = `asyncapi: 3.0.0
info: { title: Notes, version: 1.0.0 }
components:
  messages:
${event('NoteCreated', 'note.created')}${event('NoteLost', 'note.lost', LOST_DEPRECATION)}  schemas:
${payload('NoteCreated', 'note.created')}${payload('NoteLost', 'note.lost')}`

export const TODAY = new Date('2026-03-01T12:00:00Z')
export const AFTER_SUNSET = new Date('2026-06-01T00:00:00Z')

/** A replacement of the first `from` in openapi.yaml or asyncapi.yaml. */
export type Edit = [from: string, to: string]
