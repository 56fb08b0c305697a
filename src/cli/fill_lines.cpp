#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/classify_lines.h"
#include "cli/label_lines.h"
#include "cli/print.h"
#include "cli/weights.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<std::vector<MaskedToken>>& text) {
  Json masks = Json::array();
  for (const auto& tokens : text) {
    Json list = Json::array();
    for (const MaskedToken& one : tokens)
      list.push_back({{"token", one.token}, {"id", one.id}, {"score", one.score}});
    masks.push_back(list);
  }
  return {{"masks", masks}};
}

}  // namespace

void fill_lines(const FillOptions& options) {
  refuse_other_heads("fill", options.folder, options.load, {head::Kind::Masked});
  LoadReport report;
  const TextClassifier model =
      load_text_classifier(options.folder, options.freezing,
                           LoadOptions(options.load).report(&report), head::Kind::Masked);
  note_unexpected("fill", report);
  CutLines cut("fill", model.max_seq_length());
  const auto requested = FillMaskOptions()
                             .top_k(options.top)
                             .targets(options.targets)
                             .batch_size(options.batch)
                             .on_truncated(cut.count());
  model.fill({}, requested);  // refuses options before it waits for texts
  each_lines<std::string>(
      options.file, options.batch, [](const LineReader&, const std::string& line) { return line; },
      [&](const std::vector<std::string>& texts) {
        for (const auto& text : model.fill(texts, requested)) print("{}\n", json_of(text).dump());
      });
}

}  // namespace posenc::cli
