/** Finds records, webhooks, keys and people by name. */
import { type Resource, resources } from '../../../generated/resources.ts'
import { findKeysByName, type OwnedApiKey } from '../../../records/api-keys.ts'
import { listUsers, type User } from '../../../records/users.ts'
import { listWebhooks, webhookName } from '../../../records/webhooks.ts'
import { capital } from '../format.ts'
import { canManageKeys, isOwner, isOwnerOrAdmin, type Visit } from '../page.ts'
import { noun } from '../records/labels.ts'
import {
  distinguishingText,
  recordName,
  type SearchResult,
  searchRecords,
} from '../records/references.ts'
import { canViewResource, nameField, resourcePath } from '../records/resources.ts'
import { hasWords, type Match } from './match.ts'

/** The search of records uses parts of three characters: with fewer it reads all records. */
export const MIN_NAME_CHARACTERS = 3
const MAX_OF_A_KIND = 4

type Search = (visit: Visit, text: string) => Promise<Match[]>

export interface FoundNames {
  matches: Match[]
  /** The kinds of records of which only the newest were searched, because their list has no search. */
  limitedTo: Resource[]
}

export async function findByName(visit: Visit, text: string): Promise<FoundNames> {
  const searches: Search[] = []
  if (isOwnerOrAdmin(visit.user)) searches.push(searchWebhooks, searchKeys)
  if (isOwner(visit.user)) searches.push(searchPeople)
  const [records, ...others] = await Promise.all([
    searchAllRecords(visit, text),
    ...searches.map((search) => search(visit, text)),
  ])
  return {
    matches: [...records.flatMap(recordMatches), ...others.flat()],
    limitedTo: records.flatMap(({ resource, isLimited }) => (isLimited ? [resource] : [])),
  }
}

async function searchAllRecords(visit: Visit, text: string): Promise<SearchResult[]> {
  if ([...text].length < MIN_NAME_CHARACTERS) return []
  return Promise.all(
    namedResources(visit.user).map((resource) => searchRecords(visit, resource, text, {})),
  )
}

function recordMatches({ resource, items }: SearchResult): Match[] {
  return items.slice(0, MAX_OF_A_KIND).map((item) => {
    const detail = distinguishingText(resource, item, items)
    return {
      to: resourcePath(resource, item.id),
      title: recordName(resource, item) ?? item.id,
      detail: typeof detail === 'string' ? detail : undefined,
      kind: capital(noun(resource)),
    }
  })
}

function namedResources(user: User): Resource[] {
  return resources.filter(
    (resource) => canViewResource(user, resource) && nameField(resource) !== undefined,
  )
}

const searchWebhooks: Search = async ({ scope }, text) =>
  (await listWebhooks(scope))
    .filter(({ url, description }) => hasWords(`${description} ${url}`, text))
    .slice(0, MAX_OF_A_KIND)
    .map((webhook) => ({
      to: `/webhooks/${webhook.id}`,
      title: webhookName(webhook),
      detail: webhook.url,
      kind: 'Webhook',
    }))

const searchKeys: Search = async ({ scope, user }, text) =>
  (await findKeysByName(scope, text, MAX_OF_A_KIND)).map((key) => keyMatch(user, key))

export function keyMatch(
  user: User,
  { id, name, tokenPrefix, owner, revokedAt }: OwnedApiKey,
): Match {
  const isOpenable = canManageKeys(user) && revokedAt === null
  return {
    // A user who may not change the key sees its requests.
    to: isOpenable ? `/api-keys/${id}` : `/requests?key=${id}&range=30d`,
    title: name,
    detail: `${tokenPrefix}…, ${owner.fullName}${revokedAt === null ? '' : ', revoked'}`,
    kind: 'API key',
  }
}

const searchPeople: Search = async ({ scope }, text) =>
  (await listUsers(scope))
    .filter(({ fullName, email }) => hasWords(`${fullName} ${email}`, text))
    .slice(0, MAX_OF_A_KIND)
    .map(({ id, fullName, email }) => ({
      to: `/people/${id}`,
      title: fullName,
      detail: email,
      kind: 'User',
    }))
