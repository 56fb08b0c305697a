#include "tokenizers/folder/folder_model.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>

#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/base64.h"
#include "tokenizers/folder/components.h"
#include "tokenizers/folder/language_codes.h"
#include "tokenizers/folder/model_files.h"
#include "tokenizers/models/vocabulary.h"
#include "tokenizers/sentencepiece/model_proto.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

using Kind = ModelDefinition::Kind;

// The vocabulary of a class in the order of its ids.
class Arranger {
 public:
  Arranger(ClassBuilder& builder, const SentencePieceModel& source, Kind kind)
      : builder_(builder), source_(source), kind_(kind) {}

  void arrange() {
    const std::string& name = builder_.settings.tokenizer_class;
    if (name == "XLMRobertaTokenizer") {
      add_fairseq(3);
      add_token("mask_token", "<mask>");
    } else if (name == "MBartTokenizer" || name == "MBart50Tokenizer") {
      const bool is_50 = name == "MBart50Tokenizer";
      add_fairseq(3, is_50 ? "cls_token" : "bos_token");
      for (const std::string& code : is_50 ? mbart50_codes() : mbart_codes()) add(code, 0);
      add_token("mask_token", "<mask>");
    } else if (name == "NllbTokenizer") {
      add_fairseq(0);
    } else if (name == "SeamlessM4TTokenizer") {
      for (const char* token : {"<pad>", "<unk>", "<s>", "</s>"}) add(token, 0);
      for (std::size_t i = 0; i < 3; ++i) {
        if (i < source_.pieces.size() &&
            source_.pieces[i].text == builder_.definition.model.vocab[i + 1].text)
          continue;
        refuse("the pieces", "begin with <unk>, <s> and </s>",
               "another at place " + std::to_string(i));
      }
      add_pieces(3);
    } else if (name == "CamembertTokenizer") {
      add("<s>NOTUSED", 0);
      add_token("pad_token", "<pad>");
      add("</s>NOTUSED", 0);
      add_token("unk_token", "<unk>");
      add("<unk>NOTUSED", -100);
      add_pieces(1);
      add_token("mask_token", "<mask>");
    } else if (name == "PegasusTokenizer") {
      add_pegasus();
    } else {
      add_pieces(0);
      if (name == "T5Tokenizer" || name == "VideoPrismTokenizer") {
        for (int64_t i = builder_.arguments.number("extra_ids", 100); i-- > 0;) {
          add("<extra_id_" + std::to_string(i) + ">", 0);
        }
      }
    }
  }

 private:
  void add(const std::string& text, double score) {
    ModelDefinition& model = builder_.definition.model;
    const auto id = static_cast<uint32_t>(model.vocab.size());
    if (kind_ != Kind::Unigram) {
      if (!texts_.insert(text).second) return;  // one that NLLB has among its first
    }
    model.vocab.push_back({builder_.definition.strings->keep(text), id});
    model.scores.push_back(score);
  }
  void add_token(const char* name, const char* otherwise) {
    const std::size_t before = builder_.definition.model.vocab.size();
    add(ClassBuilder::text_of(builder_.arguments.named(name, GivenToken(otherwise))), 0);
    if (builder_.definition.model.vocab.size() == before)
      refuse(name, "be another token than those before it", "the same");
  }
  void add_pieces(std::size_t from) {
    for (std::size_t i = from; i < source_.pieces.size(); ++i) {
      add(source_.pieces[i].text, static_cast<double>(source_.pieces[i].score));
    }
  }
  void add_fairseq(std::size_t from, const char* first = "bos_token") {
    add_token(first, "<s>");
    add_token("pad_token", "<pad>");
    add_token("eos_token", "</s>");
    add_token("unk_token", "<unk>");
    add_pieces(from);
  }
  void add_pegasus() {
    const std::string mask =
        ClassBuilder::text_of(builder_.arguments.named("mask_token", GivenToken("<mask_1>")));
    const std::string sentence = builder_.arguments.text("mask_token_sent", "<mask_2>");
    add_token("pad_token", "<pad>");
    add_token("eos_token", "</s>");
    if (mask != "None") add(mask, 0);
    if (sentence != mask) add(sentence, 0);
    for (int64_t i = 2; i < builder_.arguments.number("offset", 103); ++i) {
      add("<unk_" + std::to_string(i) + ">", -100);
    }
    add_pieces(2);
  }

  ClassBuilder& builder_;
  const SentencePieceModel& source_;
  Kind kind_;
  std::unordered_set<std::string> texts_;
};

SentencePieceModel read_proto(const ClassBuilder& builder, const std::string& file) {
  try {
    return read_sentencepiece_proto(builder.files().read(file));
  } catch (const TokenizerError& error) {
    throw error.in_file(builder.files().path(file));
  }
}

// The merges of a vocabulary of SentencePiece's BPE, whose files have none: every split of a token
// into two tokens, by the id of the token, then the length of the first, as transformers makes
// them. Throws TokenizerError for a token that is too long.

void make_merges(Definition& definition) {
  constexpr std::size_t kLongest = 1000;  // in bytes, as the work goes by the square
  const Vocabulary vocabulary(definition);
  std::vector<Piece> pieces = definition.model.vocab;
  std::ranges::stable_sort(pieces, {}, &Piece::id);
  for (const Piece& piece : pieces) {
    if (piece.text.size() > kLongest)
      refuse("a piece", "have at most 1000 bytes", std::to_string(piece.text.size()));
    for (std::size_t at = 0; at < piece.text.size();) {
      next_character(piece.text, at);
      if (at == piece.text.size()) break;
      const std::string_view left = piece.text.substr(0, at), right = piece.text.substr(at);
      if (vocabulary.id(left) && vocabulary.id(right))
        definition.model.merges.push_back({left, right});
    }
  }
}

void take_model(ClassBuilder& builder, const SentencePieceModel& source, Kind kind) {
  ModelDefinition& model = builder.definition.model;
  model.kind = kind;
  std::unordered_set<std::string_view> seen;
  for (const SentencePiece& piece : source.pieces) {
    if (kind != Kind::Unigram && !seen.insert(piece.text).second)
      refuse("a piece", "be there once", shown(piece.text));
  }
  if (kind == Kind::Bpe) {
    for (const SentencePiece& piece : source.pieces) {
      model.vocab.push_back({builder.definition.strings->keep(piece.text),
                             static_cast<uint32_t>(model.vocab.size())});
    }
    make_merges(builder.definition);
    model.vocab.clear();
  }
  Arranger(builder, source, kind).arrange();
  if (kind == Kind::Bpe) model.scores.clear();
  model.exact_scores = model.scores;
  if (!source.normalizer.precompiled_charsmap.empty())
    builder.set_charsmap(encode_base64(source.normalizer.precompiled_charsmap));
  Settings tokens = Settings::array();
  for (const SentencePiece& piece : source.pieces) {
    if (piece.type != SentencePiece::Type::Control &&
        piece.type != SentencePiece::Type::UserDefined)
      continue;
    GivenToken token(piece.text);
    token.has_flags = true;
    token.normalized = false;
    token.special = piece.type == SentencePiece::Type::Control;
    tokens.push_back(as_setting(token));
  }
  builder.arguments.set("additional_special_tokens", std::move(tokens));
  if (kind == Kind::Unigram) builder.arguments.set("unk_id", source.unk_id);
}

// transformers copies this tokenizer, by way of its JSON.
double copied_score(double score) {
  char text[64];
  const auto [end, failure] = std::to_chars(text, text + sizeof text, score);
  return failure == std::errc() ? serde_score({text, end}) : score;
}

}  // namespace

void read_sentencepiece_model(ClassBuilder& builder, ModelDefinition::Kind kind,
                              const std::string& file) {
  take_model(builder, read_proto(builder, file), kind);
}

void take_file_or_sentencepiece(ClassBuilder& builder, const VocabularyFiles& files,
                                std::optional<Kind> kind) {
  if (builder.has_file()) return builder.take_file();
  const SentencePieceModel source = read_proto(builder, vocabulary_file(builder, files));
  const bool is_unigram =
      kind ? *kind == Kind::Unigram : source.kind == SentencePieceModel::Kind::Unigram;
  take_model(builder, source, is_unigram ? Kind::Unigram : Kind::Bpe);
  ModelDefinition& model = builder.definition.model;
  model.byte_fallback = source.byte_fallback;
  if (is_unigram) {
    if (!builder.arguments.added().empty()) {
      refuse("added_tokens_decoder", "be absent beside a SentencePiece model of Unigram", "some");
    }
    model.unk_id = static_cast<uint64_t>(static_cast<uint32_t>(source.unk_id));
    for (double& score : model.scores) score = copied_score(score);
  } else {
    model.unk_token = source.unk_piece;
    model.fuse_unk = true;
    for (const auto& [id, token] :
         builder.arguments.added()) {  // which name what the file calls a placeholder
      const std::string_view content = token.content;
      const auto named = [&](const Piece& piece) { return piece.text == content; };
      if (std::ranges::any_of(model.vocab, named)) continue;
      const auto piece = std::ranges::find(model.vocab, static_cast<uint32_t>(id), &Piece::id);
      if (piece != model.vocab.end()) piece->text = builder.definition.strings->keep(token.content);
    }
  }
  std::vector<components::Component> normalizers;
  if (builder.charsmap()) normalizers.push_back(components::precompiled(*builder.charsmap()));
  normalizers.push_back(components::replace(" ", "\u2581"));
  builder.definition.normalizer = components::normalizers(normalizers);
  std::vector<components::Component> decoders = {components::replace("\u2581", " ")};
  if (model.byte_fallback) {
    decoders.insert(decoders.end(), {components::plain("ByteFallback"), components::plain("Fuse")});
  }
  builder.definition.decoder = components::decoders(decoders);
  if (source.bos_id >= 0)
    builder.arguments.set_default("bos_token", source.bos_piece.empty() ? "<s>" : source.bos_piece);
  if (source.eos_id >= 0)
    builder.arguments.set_default("eos_token",
                                  source.eos_piece.empty() ? "</s>" : source.eos_piece);
  if (source.unk_id >= 0)
    builder.arguments.set_default("unk_token",
                                  source.unk_piece.empty() ? "<unk>" : source.unk_piece);
}

}  // namespace posenc::text
