// FNet: a Fourier transform in place of an attention.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// For sequences that are shorter than tpu_short_seq_length, FNetBasicFourierTransform then computes
// something else where SciPy is installed, and needs its matrices in the file.
void read_fnet(const Settings& config, const ModelType&, EncoderOptions&) {
  constexpr int64_t kMostWithMatrices = 4096;
  if (!config.flag("use_tpu_fourier_optimizations")) return;
  if (config.integer("max_position_embeddings", 1, INT64_MAX) > kMostWithMatrices) return;
  config.refuse("use_tpu_fourier_optimizations",
                "must be false with a max_position_embeddings of at most 4096");
}

// clang-format off
const EncoderLayerKeys kFNetKeys[] = {{
    .layer = "encoder.layer.*.", .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "fourier.output.LayerNorm", .norm2 = "output.LayerNorm"}};

constexpr EncoderStructure kFNetLayers = {.keys = kFNetKeys, .mixing = Mixing::Fourier,
    .attention_output_dropout = Rate::None, .pooling = Pooling::TanhOfFirst,
    .more = read_fnet};

constexpr EmbeddingsStructure kFNetTables = {.projection = Projection::BeforeDropout};

constexpr ModelType kFNetTypes[] = {
    {.type = "fnet", .embeddings = "bert_narrow", .tables = &kFNetTables,
     .layers = &kFNetLayers, .heads = &heads::kBert, .prefix = "fnet."},
};
// clang-format on

}  // namespace

constinit const Family fnet = kFNetTypes;

}  // namespace posenc::families
