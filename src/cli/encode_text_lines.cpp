#include <fmt/format.h>

#include "cli/classify_lines.h"
#include "cli/error.h"
#include "cli/label_lines.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/text_lines.h"
#include "cli/weights.h"
#include "posenc/text/sentence_encoder.h"
#include "posenc/weights/save.h"

namespace posenc::cli {

namespace {

// sentence-transformers says so too.
void note_pooling(const std::string& folder) {
  print_error(
      "posenc encode: {} has no modules.json of sentence-transformers: a vector is the mean of the "
      "tokens' last hidden states, or of a causal language model the last of them\n",
      shown(folder));
}

}  // namespace

void refuse_if(bool is_given, const EncodeTextOptions& options, const char* option,
               const char* what) {
  if (is_given) fail("{}: {} is for {}", options.folder, option, what);
}

void write_vectors(const EncodeTextOptions& options, const StateDict& vectors) {
  const StateDict stored = quantized(vectors, options.precision);
  save_tensors(options.output, stored);
  print("{}: {}\n", options.output, described(stored));
}

namespace {

void encode_dense_lines(const EncodeTextOptions& options) {
  LoadReport report;
  const SentenceEncoder model = load_sentence_encoder(options.folder, options.freezing,
                                                      LoadOptions(options.load).report(&report));
  note_unexpected("encode", report);
  if (!model.folder().has_modules) note_pooling(options.folder);
  CutLines cut("encode", model.max_seq_length(options.task));
  auto requested = encode_options<SentenceEncodeOptions>(options, cut).normalize(options.normalize);
  if (options.truncate_dim > 0) requested.truncate_dim(options.truncate_dim);
  StateDict result;
  result.insert("embeddings", model.encode(texts_in(options.file), requested));
  write_vectors(options, result);
}

}  // namespace

void encode_text_lines(const EncodeTextOptions& options) {
  if (!options.decode)
    check_output(options.output, {options.folder, options.file, options.precision.file});
  const SentenceKind kind = inspect_sentence_kind(options.folder, options.load.base());
  const bool is_sparse = options.sparse || kind == SentenceKind::Sparse;
  const bool is_per_token = options.per_token || (!is_sparse && kind == SentenceKind::MultiVector);
  refuse_if(is_sparse && is_per_token, options, "--per-token", "vectors that are not sparse");
  refuse_if(!is_sparse && options.max_active_dims.has_value(), options, "--max-active-dims",
            "the vectors of a SparseEncoder");
  refuse_if(!is_sparse && options.decode, options, "--decode", "the vectors of a SparseEncoder");
  refuse_if(!is_per_token && options.pool_factor > 0, options, "--pool-factor",
            "the vectors of a MultiVectorEncoder");
  if (is_sparse) return encode_sparse_lines(options);
  if (is_per_token) return encode_token_lines(options);
  encode_dense_lines(options);
}

}  // namespace posenc::cli
