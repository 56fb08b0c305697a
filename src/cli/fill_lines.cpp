#include <ATen/ops/softmax.h>
#include <ATen/ops/topk.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/classify_lines.h"
#include "cli/error.h"
#include "cli/text_lines.h"
#include "cli/text_model.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

// The most probable tokens, of probabilities (V).
Json best_tokens(const Tokenizer& tokenizer, const torch::Tensor& probabilities, int64_t top) {
  const auto [scores, ids] = at::topk(probabilities, std::min(top, probabilities.size(0)));
  Json list = Json::array();
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const auto id = ids[i].item<int64_t>();
    list.push_back({{"token", tokenizer.decode(std::vector<int64_t>{id}, false)},
                    {"id", id},
                    {"score", scores[i].item<float>()}});
  }
  return list;
}

}  // namespace

void fill_lines(const FillOptions& options) {
  const torch::NoGradGuard no_grad;
  const TextModel model(options.folder, head::Kind::Masked);
  const auto mask = model.tokenizer().special_token_id("mask_token");
  if (!mask) fail("{}: the tokenizer must have a mask_token", options.folder);
  each_line(options.file, [&](const LineReader& reader, const std::string& line) {
    const Encoding tokens = model.tokens({line, "", false});
    const auto [ids, inputs] = model.batch({tokens});
    const torch::Tensor places = ids[0].eq(*mask).nonzero().squeeze(-1);
    if (places.numel() == 0) {
      fail("{}: line {} must have a mask, {}", reader.name(), reader.number(),
           model.tokenizer().id_to_token(*mask).value_or(""));
    }
    const auto out = model.model().encoder().forward(ids, inputs);
    const torch::Tensor probabilities =
        at::softmax(model.model().logits(out.last_hidden_state[0].index_select(0, places)), -1);
    Json masks = Json::array();
    for (int64_t i = 0; i < places.size(0); ++i) {
      masks.push_back(best_tokens(model.tokenizer(), probabilities[i], options.top));
    }
    fmt::print("{}\n", Json{{"masks", masks}}.dump());
  });
}

}  // namespace posenc::cli
