#include <utility>

#include "cli/classify_lines.h"
#include "cli/error.h"
#include "cli/label_lines.h"
#include "cli/print.h"
#include "cli/weights.h"
#include "posenc/text/multi_vector_encoder.h"

namespace posenc::cli {

void encode_token_lines(const EncodeTextOptions& options) {
  if (options.truncate_dim > 0)
    fail("--truncate-dim must be for a model of one vector a text. Got {}", shown(options.folder));
  LoadReport report;
  const MultiVectorEncoder model = load_multi_vector_encoder(
      options.folder, options.freezing, LoadOptions(options.load).report(&report));
  note_unexpected("encode", report);
  CutLines cut("encode", model.max_seq_length(options.task));
  auto requested =
      encode_options<MultiVectorEncodeOptions>(options, cut).normalize(options.normalize);
  if (options.pool_factor > 0.0)
    requested.token_pooling(sentence::TokenPooling{options.pool_factor});
  MultiVectors vectors = model.encode(texts_in(options.file), requested);
  StateDict result;
  result.insert("embeddings", std::move(vectors.embeddings));
  result.insert("lengths", std::move(vectors.lengths));
  write_vectors(options, result);
}

}  // namespace posenc::cli
