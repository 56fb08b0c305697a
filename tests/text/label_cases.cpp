// Answers tests/differential/labels.py: reads cases as a JSON list, each with a folder and calls of
// its TextClassifier, and writes a list of their results, or of the messages of errors.

#include <c10/util/Exception.h>

#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "posenc/text/text_classifier.h"

namespace posenc {
namespace {

using Json = nlohmann::json;
using Texts = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Json json_of(const std::vector<LabelScore>& labels) {
  Json list = Json::array();
  for (const LabelScore& one : labels) list.push_back({one.label, one.score});
  return list;
}

Json json_of(const torch::Tensor& scores) {
  const at::Tensor flat = scores.contiguous().flatten();
  return std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
}

Json json_of(const std::optional<TextSpan>& span) {
  if (!span) return nullptr;
  return {span->begin, span->end, span->byte_begin, span->byte_end};
}

Json json_of(const std::vector<TokenLabel>& labels) {
  Json list = Json::array();
  for (const TokenLabel& one : labels)
    list.push_back({one.label, one.score, one.word, one.index, json_of(one.span)});
  return list;
}

Json json_of(const std::vector<Answer>& answers) {
  Json list = Json::array();
  for (const Answer& one : answers) list.push_back({one.text, one.score, json_of(one.span)});
  return list;
}

Json json_of(const std::vector<std::vector<MaskedToken>>& masks) {
  Json all = Json::array();
  for (const auto& tokens : masks) {
    Json list = Json::array();
    for (const MaskedToken& one : tokens)
      list.push_back({one.id, one.score, one.token, one.sequence});
    all.push_back(list);
  }
  return all;
}

template <typename Results>
Json json_of_all(const Results& results) {
  Json list = Json::array();
  for (const auto& one : results) list.push_back(json_of(one));
  return list;
}

template <typename T>
std::optional<T> optional(const Json& call, const char* name) {
  if (!call.contains(name) || call.at(name).is_null()) return std::nullopt;
  return call.at(name).get<T>();
}

Json called(const TextClassifier& model, const Json& call) {
  const std::string method = call.at("method");
  const int64_t batch = call.at("batch_size");
  if (method == "answer") {
    return json_of(model.answer(call.at("question"), call.at("context"),
                                AnswerOptions()
                                    .top_k(call.at("top_k"))
                                    .max_answer_len(call.at("max_answer_len"))
                                    .max_seq_len(call.at("max_seq_len"))
                                    .doc_stride(optional<int64_t>(call, "doc_stride"))
                                    .handle_impossible_answer(call.at("handle_impossible_answer"))
                                    .align_to_words(call.at("align_to_words"))
                                    .batch_size(batch)));
  }
  if (method == "choose") return json_of(model.choose(call.at("text"), call.at("choices")));
  std::vector<int64_t> cut;
  const auto tell = [&](int64_t index) { cut.push_back(index); };
  const auto with_cut = [&](const Json& results) { return Json{{"all", results}, {"cut", cut}}; };
  if (method == "label_tokens") {
    const auto found = model.label_tokens(
        call.at("texts").get<Texts>(),
        TokenLabelOptions()
            .aggregation(static_cast<labels::Aggregation>(call.at("aggregation").get<int>()))
            .ignore_labels(call.at("ignore_labels").get<Texts>())
            .stride(optional<int64_t>(call, "stride"))
            .batch_size(batch)
            .on_truncated(tell));
    return with_cut(json_of_all(found));
  }
  if (method == "fill") {
    const auto found =
        model.fill(call.at("texts").get<Texts>(), FillMaskOptions()
                                                      .top_k(call.at("top_k"))
                                                      .targets(call.at("targets").get<Texts>())
                                                      .batch_size(batch)
                                                      .on_truncated(tell));
    return with_cut(json_of_all(found));
  }
  const auto requested =
      TextClassifyOptions()
          .top_k(optional<int64_t>(call, "top_k"))
          .function(static_cast<labels::Function>(call.at("function").get<int>()))
          .prompt(optional<std::string>(call, "prompt"))
          .batch_size(batch)
          .on_truncated(tell);
  if (method == "classify_pairs")
    return with_cut(json_of_all(model.classify_pairs(call.at("pairs").get<Pairs>(), requested)));
  if (method == "pair_scores")
    return json_of(model.pair_scores(call.at("pairs").get<Pairs>(), requested));
  return with_cut(json_of_all(model.classify(call.at("texts").get<Texts>(), requested)));
}

// The results of several calls of a folder's model.
Json results_of(const Json& given) {
  try {
    const TextClassifier model = load_text_classifier(given.at("folder"));
    Json all = Json::array();
    for (const Json& call : given.at("calls")) all.push_back(called(model, call));
    return all;
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace
}  // namespace posenc

int main() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  posenc::Json all = posenc::Json::array();
  for (const posenc::Json& given : posenc::Json::parse(text)) {
    std::cerr << given.at("folder") << std::endl;  // which case ended the program, if one does
    all.push_back(posenc::results_of(given));
  }
  std::cout << all.dump(-1, ' ', false, posenc::Json::error_handler_t::replace) << std::endl;
}
