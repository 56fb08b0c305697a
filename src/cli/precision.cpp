#include "cli/precision.h"

#include "cli/arguments.h"
#include "cli/error.h"
#include "cli/weights.h"

namespace posenc::cli {
namespace {

using functional::EmbeddingPrecision;

constexpr std::pair<const char*, EmbeddingPrecision> kPrecisions[] = {
    {"int8", EmbeddingPrecision::Int8},
    {"uint8", EmbeddingPrecision::UInt8},
    {"binary", EmbeddingPrecision::Binary},
    {"ubinary", EmbeddingPrecision::UBinary}};

}  // namespace

std::vector<CLI::Option*> add_precision_options(CLI::App& sub, PrecisionOptions& options) {
  auto* precision = add_choice(
      sub, "--precision", kPrecisions, options.precision,
      "write 8 bits for each entry, levels between the least and the largest of its column, which "
      "are written as `ranges` (2, D), or 1 bit, whether it is positive; default: float32");
  auto* ranges =
      sub.add_option("--ranges", options.file,
                     "safetensors with the `ranges` of the levels, such as the corpus as "
                     "this command wrote it; default: those of the vectors themselves");
  ranges->needs(precision)->check(input_path());
  return {precision, ranges};
}

void read_ranges(PrecisionOptions& options) {
  if (options.file.empty()) return;
  const bool has_levels = options.precision == EmbeddingPrecision::Int8 ||
                          options.precision == EmbeddingPrecision::UInt8;
  if (!has_levels) fail("--ranges is for --precision int8 and uint8; bits have no ranges");
  options.ranges = read_tensors(options.file, {"ranges"})["ranges"];
}

StateDict quantized(const StateDict& vectors, const PrecisionOptions& options) {
  if (!options.precision) return vectors;
  StateDict result;
  for (const auto& item : vectors)
    if (item.key() != "embeddings") result.insert(item.key(), item.value());
  const auto stored =
      functional::quantize_embeddings(vectors["embeddings"], *options.precision, options.ranges);
  result.insert("embeddings", stored.embeddings);
  if (stored.ranges.defined()) result.insert("ranges", stored.ranges);
  return result;
}

}  // namespace posenc::cli
