/** The pages that start an import: choose a file, then the fields of its columns. */
import { InvalidInput, StatusError } from '../../../errors.ts'
import { type Resource, resources } from '../../../generated/resources.ts'
import { JobFailed } from '../../../operations/file-job.ts'
import { LEFT_OUT, readSample, writableFields } from '../../../operations/import-rows.ts'
import {
  findImportedColumns,
  findUpload,
  isUploadTaken,
  readImportFile,
} from '../../../records/imports.ts'
import type { User } from '../../../records/users.ts'
import { type Html, html } from '../../shared/html.ts'
import { formPage, labelledField, selectField } from '../form-fields.ts'
import { AlreadyCreated, FORM_KEY, formKey, formRequest } from '../idempotent-form.ts'
import { errorPage } from '../layout.ts'
import {
  type ConsolePage,
  get,
  type PageResult,
  post,
  postFile,
  type Route,
  redirect,
  type Visit,
} from '../page.ts'
import { withQuery } from '../query.ts'
import { hiddenInput } from '../ui.ts'
import { readUploadForm } from './import-upload.ts'
import { label, plural } from './labels.ts'
import { canPerform, type Item, optionOf, resourceByOption } from './resources.ts'

const LIST_PATH = '/records/imports'
const NEW_PATH = `${LIST_PATH}/new`
const CRUMBS = [{ label: 'Imports', to: LIST_PATH }]

export const importRoutes: Route[] = [
  get(NEW_PATH, canImport, filePage),
  postFile(NEW_PATH, canImport, receiveFile),
  get(`${NEW_PATH}/:upload`, canImport, columnsPage),
  post(`${NEW_PATH}/:upload`, canImport, startImport),
]

/** The link that imports the rows of a dry run. */
export function importRowsLink({ id, resource, format, mode }: Item): string {
  const values = { resource: String(resource), format: String(format), mode: String(mode) }
  return withQuery(`${NEW_PATH}/${id}`, { ...values, dry_run: 'false' })
}

export function canImport(user: User): boolean {
  return user.permissions.exports === 'write'
}

/** The resources that the user may import. */
function listTargets(user: User): Resource[] {
  return resources.filter(
    (resource) => resource.operations.update !== null && canPerform(user, resource, 'create'),
  )
}

/** The named resource, or the first one without a name. Throws 403 for one that the user may not
 *  import. */
function findTarget({ user }: Visit, name: string | null): Resource {
  const targets = listTargets(user)
  const target = name === null ? targets[0] : resourceByOption(name)
  if (target === undefined || !targets.includes(target))
    throw new StatusError(403, 'You may not change these records, so you cannot import them.')
  return target
}

function filePage({ user, query }: Visit): ConsolePage {
  const choices = listTargets(user).map((resource) => ({
    value: optionOf(resource),
    label: plural(resource),
  }))
  const file = {
    name: 'file',
    label: 'File',
    hint: 'CSV with a header line, or NDJSON (.ndjson, .jsonl). Up to 64 MiB and 100,000 rows.',
    isRequired: true,
  }
  return formPage(
    {
      title: 'New import',
      lead: 'Next, you choose the field of each column. A dry run shows what would change.',
      crumbs: CRUMBS,
    },
    { to: NEW_PATH, submit: 'Upload file', cancel: LIST_PATH, hasFile: true },
    [
      selectField({
        name: 'resource',
        label: 'Records',
        value: query.get('resource') ?? '',
        choices,
        isRequired: true,
      }),
      labelledField(
        file,
        (attributes) =>
          html`<input type="file" ${attributes} accept=".csv,.ndjson,.jsonl,text/csv">`,
      ),
    ],
  )
}

async function receiveFile(visit: Visit): Promise<PageResult> {
  const { fields, upload } = await readUploadForm(visit)
  const resource = fields.get('resource')
  findTarget(visit, resource)
  if (upload === undefined) throw new InvalidInput({ file: ['is required.'] })
  const format = upload.mediaType === 'text/csv' ? 'csv' : 'ndjson'
  const to = withQuery(`${NEW_PATH}/${upload.id}`, { resource: String(resource), format })
  return { to }
}

const MODES = [
  { value: 'upsert', label: 'Create or update, by external ID' },
  { value: 'create', label: 'Create records' },
  { value: 'update', label: 'Update records, by ID or external ID' },
]
const RUNS = [
  { value: 'true', label: 'Dry run: check the rows and change nothing' },
  { value: 'false', label: 'Import the rows' },
]

async function columnsPage(visit: Visit): Promise<ConsolePage> {
  const { query, params, scope } = visit
  const id = params.upload ?? ''
  const target = findTarget(visit, query.get('resource'))
  const format = query.get('format') === 'ndjson' ? 'ndjson' : 'csv'
  if ((await findUpload(scope, id)) === undefined) return fileGone()
  const columns = format === 'csv' ? await columnFields(visit, target) : undefined
  const canUpsert = columns?.some(({ field }) => field === 'external_id') ?? true
  const hidden = { resource: optionOf(target), format, [FORM_KEY]: formKey(visit) }
  return formPage(
    { title: `Import ${plural(target).toLowerCase()}`, crumbs: CRUMBS },
    { to: `${NEW_PATH}/${id}`, submit: 'Start import', cancel: LIST_PATH },
    [
      Object.entries(hidden).map(([name, value]) => hiddenInput(name, value)),
      selectField({
        name: 'mode',
        label: 'What each row does',
        value: query.get('mode') ?? (canUpsert ? 'upsert' : 'create'),
        choices: MODES,
        isRequired: true,
      }),
      columns?.map(({ input }) => input),
      selectField({
        name: 'dry_run',
        label: 'Run',
        value: query.get('dry_run') ?? 'true',
        choices: RUNS,
        isRequired: true,
      }),
    ],
  )
}

function fileGone(): ConsolePage {
  return errorPage(
    404,
    'The file is gone',
    html`Uploads are kept for an hour, and after a dry run for
    a week. <a href="/console${NEW_PATH}">Upload the file again</a>.`,
  )
}

const SAMPLE_ROWS = 3

/** A field of the target for each column of the file. */
async function columnFields(
  { scope, params, ctx }: Visit,
  target: Resource,
): Promise<{ field: string; input: Html }[]> {
  const id = params.upload ?? ''
  const [header = [], ...rows] = await readSample(
    readImportFile(scope, id, 'upload'),
    SAMPLE_ROWS + 1,
  ).catch((error: unknown) => {
    if (error instanceof JobFailed) return ctx.throw(422, error.message)
    throw error
  })
  const earlier = await findImportedColumns(scope, id)
  const names = ['id', ...writableFields(target)]
  const choices = names.map((name) => ({
    value: name,
    // Files have amounts in minor units, as the API has them.
    label: label(name).replace(/ minor$/, ' in minor units, for example cents'),
  }))
  return header.map((column, index) => {
    const samples = rows.map((row) => row[index]).filter(Boolean)
    const field = earlier
      ? (earlier[index] ?? '').replace(LEFT_OUT, '')
      : guessField(names, column ?? '')
    const input = selectField({
      name: `column:${index}`,
      label: `Column ${column || index + 1}`,
      hint: samples.length > 0 && `For example ${samples.join(', ').slice(0, 100)}`,
      value: field,
      choices,
      none: 'Leave out',
      isRequired: true,
    })
    return { field, input }
  })
}

/** `Full name` is the field `full_name`. */
function guessField(names: string[], column: string): string {
  const normalize = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
  return names.find((name) => normalize(name) === normalize(column)) ?? ''
}

async function startImport(visit: Visit): Promise<PageResult> {
  const { form, scope, params } = visit
  const target = findTarget(visit, form.get('resource'))
  const isCsv = form.get('format') !== 'ndjson'
  const columns = [...form]
    .filter(([name]) => name.startsWith('column:'))
    .map(([, field]) => field || LEFT_OUT)
  const query = {
    resource: optionOf(target),
    mode: form.get('mode'),
    dry_run: form.get('dry_run') !== 'false',
    ...(isCsv && { columns }),
  }
  const upload = await findUpload(scope, params.upload ?? '')
  if (upload === undefined) return fileGone()
  try {
    const mediaType = isCsv ? 'text/csv' : 'application/x-ndjson'
    // A dry run keeps its file, so another import gets a copy.
    const body = (await isUploadTaken(scope, upload.id))
      ? await visit.storeFile({ mediaType, content: readImportFile(scope, upload.id, 'upload') })
      : { ...upload, mediaType }
    const idempotency = formRequest(visit)
    const { id } = (await visit.call('createImport', { query, body, idempotency })) as Item
    return redirect(`${LIST_PATH}/${id}`, 'Import started.')
  } catch (error) {
    if (error instanceof AlreadyCreated && !error.hasDifferentInput)
      return redirect(`${LIST_PATH}/${error.id}`, 'The import was already started.')
    throw error
  }
}
