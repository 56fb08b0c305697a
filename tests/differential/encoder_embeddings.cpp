// Embeddings of configurations.

#include "posenc/positions/nn/encoder_embeddings.h"
#include "differential/ops.h"
#include "posenc/models/encoder_embeddings_preset.h"
#include "support/threads.h"

namespace posenc::differential {
namespace {

at::Tensor given_or_none(const StateDict& in, const char* name) {
  return in.contains(name) ? in[name] : at::Tensor();
}

StateDict embeddings(const Json& options, const StateDict& tensors) {
  const testing::Threads one(1);  // as Python: the norm's gradients are summed by thread
  EncoderEmbeddings module(
      encoder_embeddings_options_from_hf(options.at("config").get<std::string>()));
  const auto forward = [&](const StateDict& in) {
    return module->forward(in["ids"], EncoderEmbeddingsInputs()
                                          .token_type_ids(given_or_none(in, "token_type_ids"))
                                          .task_type_ids(given_or_none(in, "task_type_ids"))
                                          .bbox(given_or_none(in, "bbox"))
                                          .position_ids(given_or_none(in, "position_ids"))
                                          .attention_mask(given_or_none(in, "attention_mask")));
  };
  return differentiate(*module, options, tensors, forward);
}

}  // namespace

Ops embeddings_ops() { return {{"embeddings", embeddings}}; }

}  // namespace posenc::differential
