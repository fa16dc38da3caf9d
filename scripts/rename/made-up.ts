/** Finds the files in which a name means the made-up resource that docs/new-resource.md adds as an
 *  example. The code and the tests of the toolchain use this example, too. A rename does not change
 *  these files, even if the contract has the same name. */
import { findMentions, type TextFile } from './text-files.ts'

const GUIDE = 'docs/new-resource.md'
const TOOLCHAIN_FILE = /^(cli|scripts|test\/(cli|scripts))\//

interface Split {
  /** The files in which the name means the made-up resource. */
  madeUp: TextFile[]
  others: TextFile[]
}

/** `declaration` is the line with which the guide declares the name, for example
 *  `operationId: getVenue`. */
export function splitMadeUp(files: TextFile[], declaration: string): Split {
  const guide = files.find(({ file }) => file === GUIDE)
  const lines = (guide?.text ?? '').split('\n').map((line) => line.trim())
  if (!lines.includes(declaration)) return { madeUp: [], others: files }
  const isMadeUp = ({ file }: TextFile): boolean => file === GUIDE || TOOLCHAIN_FILE.test(file)
  return { madeUp: files.filter(isMadeUp), others: files.filter((file) => !isMadeUp(file)) }
}

/** A sentence for each file that mentions the operation. */
export function describeMadeUp(files: TextFile[], name: string): string[] {
  return files
    .flatMap((file) => findMentions(file, name))
    .map(
      (place) =>
        `${place} means ${name} of the example in ${GUIDE}: change it if it means your operation`,
    )
}
