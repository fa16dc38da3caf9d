/** A form that sends a real request with the reader's key. client/try.js runs it. */
import type { MediaType, Operation, Parameter } from '../../../scripts/model/operations.ts'
import { readDefault, type Schema } from '../../../scripts/model/schema.ts'
import { type Content, type Html, html } from '../../shared/html.ts'
import type { Api } from '../api.ts'
import type { PageContext } from '../page.ts'

const READ_NOTE = html`This form sends a real request with your key.`
const WRITE_NOTE = html`<strong>This form sends a real request and changes records of your account.</strong>`

export function tryIt(context: PageContext, operation: Operation): Html {
  const { method, path, parameters, body, files } = operation
  const sent = files[0] ?? body
  const inputs = parameters.map((parameter) => parameterInput(context, parameter))
  return html`<details class="try" id="try">
    <summary>Try it</summary>
    <form data-try data-method="${method}" data-url="${context.rootLink}${path.slice(1)}">
      <p class="quiet">
        ${method === 'GET' ? READ_NOTE : WRITE_NOTE}
        Your key stays in this tab and is sent only to this server.
      </p>
      ${KEY_INPUT}
      ${inputs}
      ${sent && bodyInput(sent)}
      <p><button type="submit" class="button primary">Send ${method}</button></p>
    </form>
    <div class="try-response" data-response role="status" hidden></div>
  </details>`
}

const KEY_INPUT = html`<div class="input">
  <label for="try-key">API key</label>
  <input id="try-key" name="key" type="password" placeholder="mst_…" autocomplete="off"
    spellcheck="false" required>
  <label class="check"><input type="checkbox" data-key-in-sample> Show this key in the curl sample</label>
</div>`

function bodyInput({ example, mediaType }: MediaType): Html {
  const text = typeof example === 'string' ? example : JSON.stringify(example ?? {}, null, 2)
  return html`<div class="input">
    <label for="try-body">Body</label>
    <textarea id="try-body" name="body" data-type="${mediaType}" rows="10" spellcheck="false">${text}</textarea>
  </div>`
}

function parameterInput({ api }: PageContext, parameter: Parameter): Html {
  const { name, in: place } = parameter
  const id = `try-${place}-${name.replace(/\W+/g, '-')}`
  const schema = api.follow(parameter.schema.value)
  return html`<div class="input">
    <label for="${id}"><code>${name}</code></label>
    ${schema.enum ? select(id, parameter, schema.enum) : textInput(id, parameter, findPlaceholder(api, parameter, schema))}
  </div>`
}

function select(id: string, { name, in: place }: Parameter, options: readonly unknown[]): Html {
  return html`<select id="${id}" name="${name}" data-in="${place}">
    <option value=""></option>
    ${options.map((option) => html`<option>${String(option)}</option>`)}
  </select>`
}

function textInput(
  id: string,
  { name, in: place, required }: Parameter,
  placeholder: unknown,
): Html {
  const attributes: Content = [
    placeholder !== undefined && html` placeholder="${String(placeholder)}"`,
    required && html` required`,
  ]
  return html`<input id="${id}" name="${name}" data-in="${place}"
    autocomplete="off" spellcheck="false"${attributes}>`
}

function findPlaceholder(
  { follow }: Api,
  { in: place, example }: Parameter,
  schema: Schema,
): unknown {
  if (readDefault(schema) !== undefined) return readDefault(schema)
  if (place === 'path' && example !== undefined) return example
  return schema.items && follow(schema.items).enum?.slice(0, 2).join(',')
}
