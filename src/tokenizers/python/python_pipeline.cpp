#include "tokenizers/python/python_pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/pipeline/settings.h"
#include "tokenizers/pipeline/truncation.h"

namespace posenc::text {
namespace {

// A template as add_rows() takes it: what is before the first text, and after each.
Plan plan_of(const PythonTemplate::Items& items, bool add_special_tokens, bool is_marked) {
  Plan plan;
  std::vector<Plan::Special> before;
  for (const PythonTemplate::Item& item : items) {
    if (item.text) {
      Plan::Encoding encoding;
      encoding.before = std::exchange(before, {});
      encoding.text = item.text;
      plan.encodings.push_back(std::move(encoding));
    } else if (add_special_tokens) {
      const Plan::Special special{item.token, 0, 0, is_marked};
      (plan.encodings.empty() ? before : plan.encodings.back().after).push_back(special);
    }
  }
  return plan;
}

// transformers' unk_token_id: that of an added token before that of the vocabulary.
std::optional<uint32_t> unknown_id(const PythonParts& parts, const FolderSettings& settings) {
  for (const auto& [name, text] : settings.special_tokens) {
    const uint32_t* const added = name == "unk_token" ? parts.added.id(text) : nullptr;
    if (added != nullptr) return *added;
  }
  return parts.python_class->unknown_id();
}

}  // namespace

// What a call needs; it is kept for the next one.
struct PythonPipeline::Workspace {
  TextTokens texts[2];
  PythonTokens tokens[2];
  std::vector<std::string> parts;
  std::string prepared;
  std::vector<Windows> windows;
  std::unique_ptr<Scratch> scratch, target_scratch;
};

PythonPipeline::PythonPipeline(PythonParts parts, const FolderSettings& settings)
    : parts_(std::move(parts)),
      name_(settings.tokenizer_class),
      unknown_(unknown_id(parts_, settings)),
      special_ids_(parts_.special_ids.begin(), parts_.special_ids.end()),
      splits_specials_(settings.split_special_tokens) {
  size_ = parts_.python_class->size();
  for (const auto& [id, token] : parts_.added.tokens()) {
    const std::optional<uint32_t> known = parts_.python_class->find(token.content);
    size_ += known ? 0 : 1;
  }
}

PythonPipeline::~PythonPipeline() = default;

void PythonPipeline::refuse_request(const char* name, const std::string& rule) const {
  base::refuse_argument("[Tokenizer] `", name, "` must ", rule, " for ", name_,
                        ", a class of transformers in Python");
}

// The text's tokens by name, as tokenize() of PythonBackend finds them.
void PythonPipeline::cut(std::string_view text, const PythonClass& python_class, Workspace& work,
                         PythonTokens& tokens) const {
  tokens.clear();
  Scratch& scratch =
      &python_class == parts_.target_class.get() ? *work.target_scratch : *work.scratch;
  work.prepared = text;
  python_class.prepare(work.prepared);
  if (splits_specials_) {
    python_class.tokenize(work.prepared, scratch, tokens);
  } else {
    parts_.added.split(work.prepared, work.parts);
    for (const std::string& part : work.parts) {
      const uint32_t* const added = parts_.added.id(part);
      if (added != nullptr) {
        tokens.add(part, *added);
      } else if (parts_.added.is_special(part)) {
        tokens.add(part);
      } else {
        python_class.tokenize(part, scratch, tokens);
      }
    }
  }
  python_class.finish(tokens, parts_.added);
}

uint32_t PythonPipeline::id_of(const PythonTokens& tokens, std::size_t i,
                               const PythonClass& python_class) const {
  const std::string_view text = tokens.text(i);
  if (const uint32_t* const added = parts_.added.id(text)) return *added;
  const std::optional<uint32_t> known = tokens.id(i);
  const std::optional<uint32_t> id = known ? known : python_class.convert(text);
  if (!id) {
    throw TokenizerError("a token: must be in the vocabulary of " + name_ +
                         ", which has no unknown one. Got " + io::in_quotes(text));
  }
  return *id;
}

void PythonPipeline::tokenize(std::string_view text, const PythonClass& python_class,
                              Workspace& work, std::size_t which) const {
  PythonTokens& tokens = work.tokens[which];
  cut(text, python_class, work, tokens);
  TextTokens& found = work.texts[which];
  found.ids.clear();
  found.tokens.clear();
  found.words.clear();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    found.words.push_back(static_cast<uint32_t>(i));
    found.ids.push_back(id_of(tokens, i, python_class));
    found.tokens.push_back(tokens.text(i));
  }
}

void PythonPipeline::encode(std::string_view text, std::optional<std::string_view> pair,
                            const EncodeRequest& request, std::size_t index,
                            EncodedRows& rows) const {
  require_utf8(text, pair, index);
  if (request.requested.offsets) refuse_request("offsets", "be false");
  if (request.overflow) refuse_request("overflow", "be false");
  Workspaces<Workspace>::Lease lease(workspaces_, [this] {
    auto made = std::make_unique<Workspace>();
    made->scratch = parts_.python_class->scratch();
    if (parts_.target_class) made->target_scratch = parts_.target_class->scratch();
    return made;
  });
  Workspace& work = *lease;
  const bool is_target = request.target;
  const PythonClass& python_class =
      is_target && parts_.target_class ? *parts_.target_class : *parts_.python_class;
  const PythonTemplate& around =
      is_target && parts_.around_target ? *parts_.around_target : parts_.around;
  if (is_target && parts_.needs_target_language && !parts_.around_target)
    refuse_request("target", "be false without a tgt_lang of the folder");
  tokenize(text, python_class, work, 0);
  if (pair) tokenize(*pair, python_class, work, 1);
  const std::size_t texts = truncate(request, around, pair ? 2 : 1, work);
  if (around.joins_last && request.add_special_tokens) {
    const auto& items = texts == 2 ? around.pair : around.single;
    for (std::size_t i = 0; i < texts; ++i) {
      auto& [begin, end] = work.windows[i].front();
      auto& ids = work.texts[i].ids;
      if (end == begin || ids[end - 1] != items.back().token.id) continue;
      if (end == ids.size()) ids.pop_back();  // the template's own stands for it: it is not cut
      --end;
    }
  }
  const Plan plan = plan_of(texts == 2 ? around.pair : around.single, request.add_special_tokens,
                            around.marks_added);
  const std::size_t before = rows.ids.size();
  add_rows(plan, work.texts, work.windows, false, request.requested, index, rows);
  if (!request.add_special_tokens) return;
  if (texts == 2 && around.has_types) {
    const auto& [begin, end] = work.windows[0].front();
    const std::size_t first = before + (end - begin) + (around.single.size() - 1);
    for (std::size_t i = first; i < rows.ids.size(); ++i) rows.type_ids[i] = 1;
  }
  if (!around.marks_specials) return;
  for (std::size_t i = before; i < rows.ids.size(); ++i) {
    if (special_ids_.contains(rows.ids[i]) && rows.ids[i] != unknown_)
      rows.special_tokens_mask[i] = 1;
  }
}

// Writes what is kept of each text; returns the number of texts that are left.
std::size_t PythonPipeline::truncate(const EncodeRequest& request, const PythonTemplate& around,
                                     std::size_t texts, Workspace& work) const {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < texts; ++i) lengths.push_back(work.texts[i].ids.size());
  std::size_t room = std::numeric_limits<std::size_t>::max();
  TruncationRule rule;
  if (request.truncation) {
    rule = *request.truncation;
    const auto& items = texts == 2 ? around.pair : around.single;
    const auto added = static_cast<std::size_t>(
        std::ranges::count_if(items, [](const PythonTemplate::Item& item) { return !item.text; }));
    room = room_for_text(rule, request.add_special_tokens ? added : 0);
  }
  return truncate_as_python(rule, room, lengths, work.windows);
}

std::string PythonPipeline::decode(const std::vector<uint32_t>& ids,
                                   bool skip_special_tokens) const {
  const std::optional<std::string> kept = parts_.python_class->kept_where_skipped_by_text();
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const uint32_t id : ids) {
    if (skip_special_tokens && !kept && special_ids_.contains(id)) continue;
    auto token = id_to_token(id);
    if (skip_special_tokens && kept && token && *token != *kept && parts_.added.is_special(*token))
      continue;
    base::throw_unless(token.has_value(), "[Tokenizer] ids must be those of tokens of ", name_,
                       ". Got ", id);
    tokens.push_back(std::move(*token));
  }
  return join(std::move(tokens));
}

std::optional<uint32_t> PythonPipeline::token_to_id(std::string_view token) const {
  if (const uint32_t* const added = parts_.added.id(token)) return *added;
  const std::optional<uint32_t> found = parts_.python_class->convert(token);
  const bool is_it = found && parts_.python_class->token(*found) == token;
  return is_it ? found : std::nullopt;
}

std::optional<std::string> PythonPipeline::id_to_token(uint32_t id) const {
  const PythonClass& own = *parts_.python_class;
  if (own.precedes_added() && own.knows(id)) return own.token(id);
  if (const AddedToken* const added = parts_.added.find(id)) return added->content;
  return own.token(id);
}

bool PythonPipeline::lists(uint32_t id) const {
  return id < parts_.python_class->id_limit() || parts_.added.find(id) != nullptr;
}

std::string PythonClass::join(const std::vector<std::string>& tokens,
                              const PythonAddedTokens&) const {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ' ';
    text += tokens[i];
  }
  return text;
}

}  // namespace posenc::text
