/** OpenAPI documents with features that the contract of this service does not have, and one with
 *  features that are not supported. */

export const MEMBERS = `Member:
  type: object
  required: [id, name]
  properties:
    id: { type: integer, readOnly: true }
    name: { type: string, minLength: 1 }
    password: { type: string, writeOnly: true }
    mentor: { $ref: '#/Member' }
    reads:
      oneOf:
        - $ref: '../openapi.yaml#/components/schemas/Novel'
        - $ref: '../openapi.yaml#/components/schemas/Atlas'
      discriminator: { propertyName: kind }
`

export const LIBRARY = `openapi: 3.1.0
info: { title: Library, version: '1' }
servers: [{ url: https://library.example/api }]
x-problem: &problem
  description: The request is wrong.
  content:
    application/problem+json:
      schema: { $ref: '#/components/schemas/Problem' }
paths:
  /shelves/{shelf}:
    parameters: [{ $ref: '#/components/parameters/shelf' }]
    get:
      operationId: get-shelf
      responses:
        '200':
          description: A shelf.
          content:
            application/json:
              schema:
                type: object
                required: [id]
                properties:
                  id: { type: integer }
                  label: { type: [string, 'null'] }
                  point: { type: array, prefixItems: [{ type: number }, { type: number }] }
        '404': *problem
        default: *problem
    head:
      operationId: has-shelf
      responses: { '200': { description: It exists. }, default: { description: It does not. } }
  /shelves/{shelf}/books/{book}/cover:
    put:
      operationId: upload-cover
      security: [{ session: [] }]
      parameters:
        - $ref: '#/components/parameters/shelf'
        - { name: book, in: path, required: true, schema: { type: string, pattern: '^[a-z]-x{0}\\d+$' } }
        - { name: theme, in: cookie, schema: { enum: [dark, light] } }
        - { name: X-Trace, in: header, schema: { type: array, items: { type: string } } }
        - { name: tags, in: query, style: pipeDelimited, schema: { type: array, items: { type: string } } }
        - name: size
          in: query
          style: deepObject
          schema: { type: object, properties: { width: { type: integer } } }
      requestBody:
        required: true
        content:
          multipart/form-data:
            schema:
              type: object
              required: [title, cover]
              properties:
                title: { type: string }
                cover: { type: string, format: binary }
                pages: { type: array, items: { type: string, format: binary } }
      responses:
        '201': { description: New., content: { application/json: { schema: { type: object } } } }
        '204': { description: Replaced. }
        '401': { description: No session. }
        '422': { <<: *problem, description: Wrong values. }
  /members:
    post:
      operationId: add-member
      security: [{ key: [] }, { basic: [] }]
      requestBody:
        required: true
        content:
          application/json: { schema: { $ref: 'parts/members.yaml#/Member' } }
      responses:
        '201':
          description: The member.
          headers: { Location: { required: true, schema: { type: string, format: uri-reference } } }
          content: { application/json: { schema: { $ref: 'parts/members.yaml#/Member' } } }
        4XX: *problem
  /notes:
    post:
      requestBody: { content: { text/plain: { schema: { type: string, maxLength: 100 } } } }
      responses: { '202': { description: Stored. } }
  /searches:
    post:
      operationId: search
      requestBody:
        required: true
        content:
          application/x-www-form-urlencoded:
            schema:
              type: object
              required: [words, options]
              properties:
                words: { type: array, items: { type: string } }
                options: { type: object, properties: { exact: { type: boolean } } }
      responses: { '204': { description: Found nothing. } }
  /counts:
    get:
      responses:
        '200':
          description: A map.
          content:
            application/json:
              schema: { type: object, minProperties: 1, additionalProperties: { type: integer } }
components:
  parameters:
    shelf: { name: shelf, in: path, required: true, schema: { type: integer } }
  securitySchemes:
    session: { type: apiKey, in: cookie, name: session }
    key: { type: apiKey, in: query, name: key }
    basic: { type: http, scheme: basic }
  schemas:
    Problem:
      type: object
      required: [type, detail]
      properties: { type: { const: 'about:blank' }, detail: { type: string } }
      allOf: [{ type: object, properties: { trace_id: { type: string } } }]
    Novel:
      type: object
      required: [kind, author]
      properties: { kind: { type: string }, author: { type: string } }
    Atlas:
      type: object
      required: [kind, scale]
      properties: { kind: { type: string }, scale: { type: integer, exclusiveMinimum: 0 } }
`

/** `reasons`: the message for each line that is not supported. */
export const UNSUPPORTED = {
  text: `openapi: 3.0.3
info: { title: All that is refused, version: '1' }
paths:
  /a/{one}:
    get:
      operationId: get-a
      parameters:
        - { name: one, in: path, required: true, style: matrix, schema: { type: string } }
        - { name: two, in: query }
      security: [{ certificate: [] }, { missing: [] }]
      responses:
        '99': { description: None. }
        '404':
  /a/{two}:
    get:
      operationId: getA
      responses: {}
  /b?x=1:
    get:
      responses:
        '200':
          description: Schemas.
          content:
            application/json: { schema: { $ref: '#/components/schemas/Gone' } }
components:
  securitySchemes:
    certificate: { type: mutualTLS }
  schemas:
    Wrong:
      properties:
        type: { type: file }
        pattern: { type: string, pattern: '(?i)a' }
        anchor: { $anchor: here }
    Remote: { $ref: 'https://example.com/schema.json' }
`,
  reasons: [
    'openapi.yaml:8 style: matrix is not supported: use style: simple',
    'openapi.yaml:9 parameter two has no schema: add one',
    'openapi.yaml:10 names the security scheme missing: add it to components.securitySchemes',
    'openapi.yaml:12 99 is no status of a final response: use for example 200, 4XX or default',
    'openapi.yaml:13 response 404 is empty: add a description',
    'openapi.yaml:15 requests for this operation are also requests for /a/{one}: join the two paths',
    'openapi.yaml:15 has no responses: add at least one',
    'openapi.yaml:15 parameters do not declare {two} of /a/{two}: add it with in: path',
    'openapi.yaml:16 repeats the operation name getA of line 5: give each operation its own operationId',
    'openapi.yaml:18 a path cannot have a query or fragment: declare query parameters instead',
    'openapi.yaml:24 refers to #/components/schemas/Gone, which does not exist: correct the reference or add its target',
    'openapi.yaml:27 certificate is a security scheme that is not supported: use apiKey, oauth2, openIdConnect, or http with basic or bearer',
    'openapi.yaml:31 file is no type: use string, number, integer, boolean, array, object, null',
    'openapi.yaml:32 (?i)a is no regular expression of JavaScript: rewrite it',
    'openapi.yaml:33 $anchor is not supported: refer to the schema by its JSON Pointer',
    'openapi.yaml:34 refers to https://example.com/schema.json: copy the target to a file of yours, and refer to that file',
  ],
}

/** A document whose generated code would be wrong. `reasons`: the message for each line. */
export const FAULTY = {
  text: `openapi: 3.0.3
info: { title: What makes the code wrong, version: '1' }
paths:
  /a/{one}:
    get:
      operationId: getA
      parameters:
        - { name: two, in: path, required: true, schema: { type: string } }
        - { name: sort, in: query, required: 'yes', schema: { type: string } }
        - { name: limit, in: query, schema: { type: integer, minimum: 10, maximum: 5 } }
        - { name: page, in: query, schema: { type: integer, default: first } }
        - { $ref: '#/components/parameters/gone' }
      responses: { '204': { description: Nothing. } }
    fetch:
      responses: { '204': { description: Nothing. } }
  /b/{one}:
    get:
      parameters:
        - { name: two, in: path, required: true, schema: { type: string } }
      responses: { '204': { description: Nothing. } }
  /c:
    get:
      parameters: { name: limit, in: query, schema: { type: integer } }
      responses: { '204': { description: Nothing. } }
components:
  schemas:
    Wrong:
      required: title
      title: 7
      properties: { inner: { minLength: two }, more: { allOf: { type: string } } }
    Part:
      type: object
      required: true
      properties:
        empty:
        title: { type: string, minLength: three, maxLength: -1 }
        names: { type: array, items: [{ type: string }], minItems: 1.5 }
        words: { type: array, items: { type: string }, minItems: 3, maxItems: 2 }
        state: { type: integer, enum: [on, 1], nullable: 'true' }
        colour: { type: string, enum: [red, 5, null], nullable: true }
        count: { type: integer, minimum: 1, exclusiveMinimum: 0 }
        kind: { type: string, enum: [a, b], default: c }
        place: { type: object, properties: { x: { type: number } }, default: { x: far } }
        valid: { type: string, nullable: true, default: null, example: 5 }
        link: { type: string, format: uri, default: '' }
        other: { $ref: '#/components/schemas/Wrong', minLength: ignored }
    Listed: { properties: [title] }
`,
  reasons: [
    'openapi.yaml:9 required must be true or false, not "yes": correct it',
    'openapi.yaml:10 minimum 10 is above maximum 5: correct one of them',
    'openapi.yaml:11 the default "first" must be integer: correct the default or its schema',
    'openapi.yaml:12 refers to #/components/parameters/gone, which does not exist: correct the reference or add its target',
    'openapi.yaml:14 fetch is no HTTP method of OpenAPI: use get, put, post, delete, options, head, patch, trace',
    'openapi.yaml:17 parameters do not declare {one} of /b/{one}: add it with in: path',
    'openapi.yaml:19 /b/{one} has no parameter two: add {two} to the path, or remove it here',
    'openapi.yaml:23 parameters must be a list: correct it',
    'openapi.yaml:28 required must be a list of names, not "title": correct it',
    'openapi.yaml:29 title must be text, not 7: correct it',
    'openapi.yaml:30 allOf must be a list of schemas: correct it',
    'openapi.yaml:30 minLength must be a whole number, 0 or more, not "two": correct it',
    'openapi.yaml:35 property empty is no schema: write its schema, for example { type: string }',
    'openapi.yaml:36 minLength must be a whole number, 0 or more, not "three": correct it',
    'openapi.yaml:36 maxLength must be a whole number, 0 or more, not -1: correct it',
    'openapi.yaml:37 items must be a schema, not a list: correct it',
    'openapi.yaml:37 minItems must be a whole number, 0 or more, not 1.5: correct it',
    'openapi.yaml:38 minItems 3 is above maxItems 2: correct one of them',
    'openapi.yaml:39 nullable must be true or false, not "true": correct it',
    'openapi.yaml:39 the value "on" of enum is not of type integer: correct the value or the type',
    'openapi.yaml:40 the value 5 of enum is not of type string: correct the value or the type',
    'openapi.yaml:41 exclusiveMinimum must be true or false, not 0: correct it',
    'openapi.yaml:42 the default "c" must be one of a, b: correct the default or its schema',
    'openapi.yaml:43 the default {"x":"far"} x must be number: correct the default or its schema',
    'openapi.yaml:47 properties must be a mapping of names to schemas: correct it',
  ],
}

/** A document that lacks parts that OpenAPI requires. */
export const INCOMPLETE = `openapi: 3.0.3
info: { title: Incomplete }
paths:
  /a:
    get:
      operationId: getA
      responses:
        '204': {}
        '404': { $ref: '#/components/responses/Missing' }
components:
  responses:
    Missing: { headers: {} }
`
