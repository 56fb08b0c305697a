#include "tokenizers/post_processors/post_processor.h"

#include <limits>
#include <utility>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/post_processors/template.h"

namespace posenc::text {
namespace {

// The type of a component. The package tries Roberta and Bert by their fields, whatever `type`
// says.
std::string post_processor_type(const nlohmann::json& json) {
  if (json.is_object() && json.contains("sep") && json.contains("cls")) {
    const bool has_all = json.contains("trim_offsets") && json.contains("add_prefix_space");
    return has_all ? "RobertaProcessing" : "BertProcessing";
  }
  return component_type("post-processor", json);
}

SpecialToken special_token(const Component& component, const char* field) {
  const nlohmann::json& pair = component.at(field);
  const bool is_pair =
      pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_number_unsigned();
  if (!is_pair || pair[1].get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    component.refuse(field, "[token, id]");
  }
  return {pair[1].get<uint32_t>(), pair[0].get<std::string>()};
}

// An outer processor copies the main encoding, but not the marks of its special tokens.
void wrap(Plan::Encoding& encoding, std::optional<Plan::Special> before, Plan::Special after) {
  for (auto* list : {&encoding.before, &encoding.after}) {
    for (Plan::Special& special : *list) special.is_marked = false;
  }
  if (before) encoding.before.insert(encoding.before.begin(), std::move(*before));
  encoding.after.push_back(std::move(after));
}

void set_type(Plan::Encoding& encoding, uint32_t type) {
  encoding.type = type;
  for (auto* list : {&encoding.before, &encoding.after}) {
    for (Plan::Special& special : *list) special.type = type;
  }
}

void set_window_type(Plan::Encoding& encoding, uint32_t type) {
  encoding.window_type = type;
  for (auto* list : {&encoding.before, &encoding.after}) {
    for (Plan::Special& special : *list) special.window_type = type;
  }
}

}  // namespace

PostProcessor::PostProcessor(const nlohmann::json& component) {
  for (const bool is_pair : {false, true}) {
    for (Plan& plan : plans_[is_pair]) {
      for (int text = 0; text <= int{is_pair}; ++text) {
        Plan::Encoding encoding;
        encoding.text = text;
        encoding.type = encoding.window_type = static_cast<uint32_t>(text);
        plan.encodings.push_back(std::move(encoding));
      }
    }
  }
  if (!component.is_null()) apply(component);
}

const Plan& PostProcessor::plan(bool is_pair, bool add_special_tokens) const {
  const Plan& plan = plans_[is_pair][add_special_tokens];
  if (!plan.problem.empty()) throw TokenizerError(plan.problem);
  return plan;
}

void PostProcessor::apply(const nlohmann::json& json) {
  const std::string type = post_processor_type(json);
  const Component component("post-processor " + type, json);
  if (type == "Sequence") {
    for (const auto& step : component.array("processors")) apply(step);
  } else if (type == "ByteLevel") {
    const bool add_prefix_space = component.boolean("add_prefix_space");
    component.boolean("use_regex", true);
    if (component.boolean("trim_offsets")) trim(add_prefix_space);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    apply_pair(json, component.part(), type == "RobertaProcessing");
  } else if (type == "TemplateProcessing") {
    apply_template(json, component.part());
  } else {
    throw TokenizerError("post-processor: `type` must be a class of tokenizers 0.23. Got \"" +
                         type + "\"");
  }
}

void PostProcessor::trim(bool add_prefix_space) {
  trims_ = true;
  for (auto& plans : plans_) {
    for (Plan& plan : plans) {
      for (Plan::Encoding& encoding : plan.encodings) {
        encoding.trims.push_back({add_prefix_space, encoding.before.empty()});
      }
    }
  }
}

void PostProcessor::apply_template(const nlohmann::json& json, const std::string& part) {
  const TemplateProcessing processing(Component(part, json));
  for (const bool is_pair : {false, true}) {
    added_[is_pair] += processing.added_tokens(is_pair);
    for (const bool with_special : {false, true}) {
      Plan& plan = plans_[is_pair][with_special];
      if (!plan.problem.empty()) continue;
      const std::size_t encodings = plan.encodings.size();
      if (encodings != 1 && encodings != 2) {
        plan.problem = part +
                       ": must get one or two encodings from the post-processor before it. Got " +
                       std::to_string(encodings);
        continue;
      }
      plan = processing.apply(std::move(plan), encodings == 2, with_special);
    }
  }
}

void PostProcessor::apply_pair(const nlohmann::json& json, const std::string& part,
                               bool is_roberta) {
  const Component component(part, json);
  const SpecialToken sep = special_token(component, "sep");
  const SpecialToken cls = special_token(component, "cls");
  if (is_roberta) {
    const bool add_prefix_space = component.boolean("add_prefix_space");
    if (component.boolean("trim_offsets")) trim(add_prefix_space);
  }
  added_[0] += 2;
  added_[1] += is_roberta ? 4 : 3;
  for (auto& plans : plans_) {
    for (const bool with_special : {false, true}) {
      auto& encodings = plans[with_special].encodings;
      for (std::size_t i = 0; i < encodings.size(); ++i) {
        Plan::Encoding& encoding = encodings[i];
        if (is_roberta) set_type(encoding, 0);
        if (!with_special) continue;
        if (is_roberta) set_window_type(encoding, 0);
        const uint32_t type = is_roberta || i == 0 ? 0 : 1;
        std::optional<Plan::Special> before;
        if (i == 0) before = {cls, 0, 0, true};
        if (i > 0 && is_roberta) before = {sep, 0, 0, true};
        wrap(encoding, std::move(before), {sep, type, type, true});
      }
    }
  }
}

}  // namespace posenc::text
