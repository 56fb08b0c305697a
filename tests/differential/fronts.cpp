// Embedding fronts of configurations.

#include "differential/ops.h"
#include "posenc/models/front_preset.h"
#include "posenc/nn/embedding_front.h"
#include "support/threads.h"

namespace posenc::differential {
namespace {

at::Tensor given_or_none(const StateDict& in, const char* name) {
  return in.contains(name) ? in[name] : at::Tensor();
}

StateDict front(const Json& options, const StateDict& tensors) {
  const testing::Threads one(1);  // as Python: the norm's gradients are summed by thread
  EmbeddingFront module(front_options_from_hf(options.at("config").get<std::string>()));
  const auto forward = [&](const StateDict& in) {
    return module->forward(in["ids"], EmbeddingFrontInputs()
                                          .token_type_ids(given_or_none(in, "token_type_ids"))
                                          .task_type_ids(given_or_none(in, "task_type_ids"))
                                          .position_ids(given_or_none(in, "position_ids"))
                                          .attention_mask(given_or_none(in, "attention_mask")));
  };
  return differentiate(*module, options, tensors, forward);
}

}  // namespace

Ops front_ops() { return {{"front", front}}; }

}  // namespace posenc::differential
