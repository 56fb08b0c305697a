/* The same in C. */
#include <posenc/tokenizers/c_api.h>
#include <stdio.h>

int main(int count, char** arguments) {
  posenc_tokenizer *tokenizer = NULL, *none = NULL;
  posenc_encoding* encoding = NULL;
  posenc_text text = {"Hello world", 11};
  char* decoded = NULL;
  size_t size = 0, i, columns;
  (void)count;
  if (posenc_tokenizer_from_file(arguments[1], &tokenizer) != POSENC_OK ||
      posenc_encode(tokenizer, &text, NULL, 1, NULL, &encoding) != POSENC_OK) {
    return 1;
  }
  columns = posenc_encoding_columns(encoding);
  for (i = 0; i < columns; ++i) printf("%lld ", (long long)posenc_encoding_ids(encoding)[i]);
  if (posenc_decode(tokenizer, posenc_encoding_ids(encoding), columns, 1, &decoded, &size) !=
      POSENC_OK) {
    return 2;
  }
  printf("\n%s\n", decoded);
  if (posenc_tokenizer_from_file(arguments[2], &none) == POSENC_FORMAT)
    printf("%s\n", posenc_last_error());
  posenc_text_free(decoded);
  posenc_encoding_free(encoding);
  posenc_tokenizer_free(tokenizer);
  return 0;
}
