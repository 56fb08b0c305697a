#include "nn/token_table.h"

#include "posenc/core/skip_init.h"
#include "torch_internals/fresh_memory.h"

namespace posenc {

torch::nn::Embedding make_embedding(torch::nn::EmbeddingOptions options) {
  const bool fresh = !options._weight().defined();
  if (fresh) {
    options._weight(
        torch_internals::fresh_output({options.num_embeddings(), options.embedding_dim()},
                                      c10::get_default_dtype_as_scalartype()));
  }
  torch::nn::Embedding made(options);
  made->options._weight(torch::Tensor());  // otherwise all clones would share this tensor
  if (fresh && !SkipInit::is_active()) made->reset_parameters();
  return made;
}

void check_token_options(const char* module, const torch::nn::EmbeddingOptions& options) {
  TORCH_CHECK_VALUE(!options.max_norm().has_value(), "[", module,
                    "] max_norm is not supported: renormalise the weight between steps. Got ",
                    *options.max_norm());
  TORCH_CHECK_VALUE(!options.scale_grad_by_freq(), "[", module,
                    "] scale_grad_by_freq is not supported. Got true");
}

}  // namespace posenc
