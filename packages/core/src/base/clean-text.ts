/** Databases refuse NUL and replace lone surrogates; neither may make the recording of an error fail. */
export function cleanText(text: string, maxLength: number): string {
  return text
    .slice(0, maxLength)
    .replaceAll('\0', '')
    .replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, '\uFFFD')
}
