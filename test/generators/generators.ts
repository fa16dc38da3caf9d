/** The generators of clients, their commands, and what their clients read when the service sends a
 *  value that an enumeration of the contract does not have. */
import { type NEW_EVENT_TYPE, NEW_STATUS } from './service.ts'

export interface Language {
  /** A command that fails if the toolchain is missing. */
  probe: string
  /** Installs the generators. Runs once, in the language's folder. */
  install?: string
}

export const languages = {
  typescript: { probe: 'node --version', install: 'npm ci --ignore-scripts' },
  go: { probe: 'go version', install: 'go mod download' },
  python: {
    probe: 'python3 -c "import ensurepip, venv"',
    install: 'python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt',
  },
  java: { probe: 'javac --version && mvn --version' },
  rust: {
    probe: 'cargo --version && javac --version && mvn --version && jq --version',
  },
} satisfies Record<string, Language>

export type LanguageName = keyof typeof languages

export interface Generator {
  name: string
  language: LanguageName
  /** Shell commands in the language's folder. They find the contracts in ../contracts. */
  generate: string
  compile: string
  /** Prints a `Report`, or a `DeliveryReport` for a generator of AsyncAPI models. */
  run: string
  /** The value that the client reads for `NEW_STATUS`, or a part of its error. Undefined for a
   *  generator of AsyncAPI models. */
  newStatus?: typeof NEW_STATUS | 'unknown_default_open_api' | { error: string }
  /** The value that the client reads for `NEW_EVENT_TYPE`, which is this value by default, or a
   *  part of its error. */
  newEventType?: typeof NEW_EVENT_TYPE | { error: string }
}

const TSC =
  'npx tsc --noEmit --strict --noUncheckedIndexedAccess --target es2023 --module esnext ' +
  '--moduleResolution bundler --allowImportingTsExtensions --skipLibCheck --types node'

export const generators: Generator[] = [
  {
    name: 'oapi-codegen',
    language: 'go',
    generate:
      'mkdir -p oapi-codegen/muster && go tool oapi-codegen -config oapi-codegen/config.yaml ../contracts/openapi.yaml',
    compile: 'go vet ./oapi-codegen/...',
    run: 'go run ./oapi-codegen',
    newStatus: NEW_STATUS,
  },
  {
    name: 'ogen',
    language: 'go',
    generate:
      'go tool ogen --clean --package muster --target ogen/muster ../contracts/openapi.yaml',
    compile: 'go vet ./ogen/...',
    run: 'go run ./ogen',
    newStatus: { error: 'invalid value: frozen' },
    newEventType: { error: 'unknown type participant.frozen' },
  },
  {
    name: 'openapi-python-client',
    language: 'python',
    generate:
      '.venv/bin/openapi-python-client generate --meta none --output-path muster --path ../contracts/openapi.yaml',
    compile: '.venv/bin/mypy --strict program.py',
    run: '.venv/bin/python program.py',
    newStatus: { error: "'frozen' is not a valid ParticipantStatus" },
    newEventType: { error: "'participant.frozen' is not a valid ImportEventType" },
  },
  {
    name: '@hey-api/openapi-ts',
    language: 'typescript',
    generate: 'npx openapi-ts -i ../contracts/openapi.yaml -o generated/hey-api',
    compile: `${TSC} hey-api.ts`,
    run: 'npx tsx hey-api.ts',
    newStatus: NEW_STATUS,
  },
  {
    name: 'orval',
    language: 'typescript',
    generate: 'npx orval',
    compile: `${TSC} orval.ts`,
    run: 'npx tsx orval.ts',
    newStatus: NEW_STATUS,
  },
  {
    name: 'kubb',
    language: 'typescript',
    generate: 'npx kubb generate',
    compile: `${TSC} kubb.ts`,
    run: 'npx tsx kubb.ts',
    newStatus: NEW_STATUS,
  },
  {
    name: 'openapi-fetch',
    language: 'typescript',
    generate:
      'npx openapi-typescript ../contracts/openapi.yaml --default-non-nullable=false -o generated/openapi-fetch.ts',
    compile: `${TSC} openapi-fetch.ts`,
    run: 'npx tsx openapi-fetch.ts',
    newStatus: NEW_STATUS,
  },
  {
    name: 'openapi-generator for Java',
    language: 'java',
    generate: 'mvn -q -B generate-sources',
    compile: 'mvn -q -B compile',
    run: 'mvn -q -B exec:java',
    newStatus: 'unknown_default_open_api',
    newEventType: { error: 'Failed deserialization for Event: 7 classes match result' },
  },
  {
    name: 'openapi-generator for Rust',
    language: 'rust',
    generate:
      'jq -f open-enums.jq ../contracts/openapi.json > openapi.json && ' +
      'mvn -q -B -f ../java/pom.xml openapi-generator:generate@rust',
    compile: 'cargo build -q',
    run: 'cargo run -q',
    newStatus: NEW_STATUS,
  },
  {
    name: '@asyncapi/modelina',
    language: 'typescript',
    generate:
      'npx modelina generate typescript ../contracts/asyncapi.yaml -o generated/modelina ' +
      '--tsModelType interface --tsEnumType union --tsRawPropertyNames',
    compile: `${TSC} modelina.ts`,
    run: 'npx tsx modelina.ts',
  },
]
