#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>

#include <optional>
#include <ostream>

#include "core/uncopied.h"
#include "posenc/positions/embedding_init.h"
#include "posenc/positions/nn/positional_encoding.h"
#include "posenc/positions/scale.h"

namespace posenc {

/// The options of the positional encoding inside a module with these options. Dropout is left to
/// the module.
template <typename Options>
PositionalEncodingOptions position_options(const Options& options) {
  auto position = PositionalEncodingOptions(options.d_model(), options.max_len())
                      .table_source(options.table_source())
                      .batch_first(options.batch_first())
                      .grow(options.grow());
  if (options.sinusoid()) position.sinusoid(*options.sinusoid());
  return position;
}

/// The parts of a module that embeds tokens and adds positions.
struct EmbedModule {
  const char* name;
  torch::nn::EmbeddingImpl& tokens;
  const Scale& scale;
  const std::optional<int64_t>& padding_idx;
  PositionalEncodingImpl& position;
  torch::nn::DropoutImpl& dropout;
  LastOutput* reuse;  ///< or null
};

/// The module's forward: functional::embed() of the ids with the rows of their positions. The rows
/// are computed, or are read from the table, which is locked meanwhile and grows if its options
/// allow it.
torch::Tensor embed_forward(const EmbedModule& module, const torch::Tensor& ids, int64_t offset,
                            const torch::Tensor& position_ids);

}  // namespace posenc
