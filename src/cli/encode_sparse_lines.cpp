#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "cli/classify_lines.h"
#include "cli/label_lines.h"
#include "cli/print.h"
#include "cli/weights.h"
#include "posenc/text/sparse_encoder.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

// A line {"tokens": [[token, weight], ...]} of each vector.
void print_tokens(const SparseEncoder& model, const SparseVectors& vectors,
                  std::optional<int64_t> top) {
  for (const auto& weights : model.decode(vectors, top)) {
    Json tokens = Json::array();
    for (const TokenWeight& one : weights)
      tokens.push_back({one.token ? Json(*one.token) : Json(), one.weight});
    const Json line = {{"tokens", tokens}};
    print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

}  // namespace

void encode_sparse_lines(const EncodeTextOptions& options) {
  const char* const dense = "vectors of a SentenceTransformer";
  refuse_if(options.normalize, options, "--normalize", dense);
  refuse_if(options.truncate_dim > 0, options, "--truncate-dim", dense);
  refuse_if(options.precision.precision.has_value(), options, "--precision", dense);
  LoadReport report;
  const SparseEncoder model = load_sparse_encoder(options.folder, options.freezing,
                                                  LoadOptions(options.load).report(&report));
  note_unexpected("encode", report);
  CutLines cut("encode", model.max_seq_length(options.task));
  const auto requested =
      encode_options<SparseEncodeOptions>(options, cut).max_active_dims(options.max_active_dims);
  const std::vector<std::string> texts = texts_in(options.file);
  const SparseVectors vectors = model.encode(texts, requested);
  if (options.decode) return print_tokens(model, vectors, options.top);
  StateDict result;
  result.insert("crow_indices", vectors.crow_indices);
  result.insert("col_indices", vectors.col_indices);
  result.insert("values", vectors.values);
  result.insert("size", at::tensor({std::ssize(texts), vectors.width}, at::kLong));
  write_vectors(options, result);
}

}  // namespace posenc::cli
