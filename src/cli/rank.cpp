// posenc rank: the documents that match a query, by a reranker or by vectors.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/label_lines.h"
#include "cli/print.h"
#include "cli/prompt_options.h"
#include "cli/stored_vectors.h"
#include "cli/text_lines.h"
#include "cli/usage.h"
#include "cli/weights.h"
#include "posenc/text/multi_vector_encoder.h"
#include "posenc/text/reranker.h"
#include "posenc/text/sentence_encoder.h"
#include "posenc/text/sparse_encoder.h"

namespace posenc::cli {
namespace {

struct RankArguments {
  std::string folder, file, queries, similarity;
  std::optional<std::string> query;
  std::optional<int64_t> top;
  PromptOptions prompt;
  int64_t batch = 32;
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

using Texts = std::vector<std::string>;
using Ranking = std::vector<RankedDocument>;
/// The rankings of some queries.
using Rank = std::function<std::vector<Ranking>(const Texts& queries)>;

Rank rank_by_pairs(const RankArguments& arguments, CutLines& cut, const LoadOptions& load) {
  if (!arguments.similarity.empty())
    fail("{} scores pairs of texts; --similarity is for models that make vectors",
         arguments.folder);
  const Reranker model = load_reranker(arguments.folder, arguments.freezing, load);
  cut.set_most(model.max_seq_length());
  const auto options = RankOptions()
                           .top_k(arguments.top)
                           .prompt_name(arguments.prompt.name)
                           .prompt(arguments.prompt.text)
                           .batch_size(arguments.batch)
                           .on_truncated(cut.count());
  return [model, options, documents = texts_in(arguments.file)](const Texts& queries) {
    std::vector<Ranking> all;
    for (const std::string& query : queries) all.push_back(model.rank(query, documents, options));
    return all;
  };
}

// Ranks by the similarities of what `of_queries` and `of_documents` make of the texts.
template <typename OfQueries, typename OfDocuments>
Rank rank_by_vectors(const RankArguments& arguments, std::optional<std::string> of_folder,
                     const OfQueries& of_queries, const OfDocuments& of_documents) {
  const std::string name =
      arguments.similarity.empty() ? of_folder.value_or("") : arguments.similarity;
  check_similarity(name);
  return [=, top = arguments.top,
          documents = of_documents(texts_in(arguments.file))](const Texts& queries) {
    const at::Tensor scores = similarity_scores(name, of_queries(queries), documents);
    std::vector<Ranking> all;
    for (const at::Tensor& own : scores.unbind(0)) all.push_back(ranked_documents(own, top));
    return all;
  };
}

// The options of encode() of a model's class: a prompt is for queries.
template <typename Options>
Options encode_options(const RankArguments& arguments, CutLines& cut, bool with_prompt) {
  auto options = Options().batch_size(arguments.batch).on_truncated(cut.count());
  if (with_prompt) options.prompt_name(arguments.prompt.name).prompt(arguments.prompt.text);
  return options;
}

StoredVectors stored(const at::Tensor& vectors) {
  return {.kind = StoredVectors::Kind::Dense, .rows = vectors};
}
StoredVectors stored(SparseVectors vectors) {
  return {.kind = StoredVectors::Kind::Sparse, .sparse = std::move(vectors)};
}
StoredVectors stored(const MultiVectors& vectors) {
  return {.kind = StoredVectors::Kind::PerTokens,
          .rows = vectors.embeddings,
          .lengths = vectors.lengths};
}

template <typename Options, typename Model>
Rank rank_by_model_of_vectors(const RankArguments& arguments, CutLines& cut, const Model& model) {
  cut.set_most(model.max_seq_length(sentence::Task::Document));
  return rank_by_vectors(
      arguments, model.folder().similarity_fn_name,
      [=, of_query = encode_options<Options>(arguments, cut, true)](const Texts& texts) {
        return stored(model.encode_query(texts, of_query));
      },
      [&](const Texts& texts) {
        return stored(model.encode_document(texts, encode_options<Options>(arguments, cut, false)));
      });
}

Rank rank_by_model(const RankArguments& arguments, CutLines& cut, const LoadOptions& load) {
  const std::string& folder = arguments.folder;
  if (is_reranker(folder, load)) return rank_by_pairs(arguments, cut, load);
  switch (inspect_sentence_kind(folder, load.base())) {
    case SentenceKind::Sparse:
      return rank_by_model_of_vectors<SparseEncodeOptions>(
          arguments, cut, load_sparse_encoder(folder, arguments.freezing, load));
    case SentenceKind::MultiVector:
      return rank_by_model_of_vectors<MultiVectorEncodeOptions>(
          arguments, cut, load_multi_vector_encoder(folder, arguments.freezing, load));
    default: break;
  }
  return rank_by_model_of_vectors<SentenceEncodeOptions>(
      arguments, cut, load_sentence_encoder(folder, arguments.freezing, load));
}

void print_ranking(int64_t query, const Ranking& ranking) {
  using Json = nlohmann::ordered_json;
  Json results = Json::array();
  for (const auto& [index, score] : ranking)
    results.push_back({{"corpus_id", index}, {"score", score}});
  print("{}\n", Json{{"query", query}, {"results", results}}.dump());
}

void rank(const RankArguments& arguments) {
  LoadReport report;
  CutLines cut("rank", std::nullopt);
  const Rank rank = rank_by_model(arguments, cut, LoadOptions(arguments.load).report(&report));
  note_unexpected("rank", report);
  int64_t number = 0;
  const auto rank_all = [&](const Texts& queries) {
    for (const Ranking& ranking : rank(queries)) print_ranking(number++, ranking);
  };
  if (arguments.query) return rank_all({*arguments.query});
  each_lines<std::string>(
      arguments.queries, arguments.batch,
      [](const LineReader&, const std::string& line) { return line; }, rank_all);
}

void add_rank(CLI::App& app) {
  constexpr int64_t kMostTexts = 1 << 20;
  auto arguments = std::make_shared<RankArguments>();
  auto* sub = app.add_subcommand(
      "rank",
      "Write the documents that match each query best, by a reranker or by the vectors of a model "
      "of sentence-transformers.");
  sub->add_option("MODEL_DIR", arguments->folder,
                  "folder of a cross-encoder, a causal language model that reranks, or a model of "
                  "sentence-transformers that makes vectors")
      ->required()
      ->check(input_path());
  auto* query = sub->add_option_function<std::string>(
      "--query", [arguments](const std::string& text) { arguments->query = text; }, "the query");
  auto* queries = sub->add_option("--queries", arguments->queries,
                                  "text file in UTF-8, a query a line; -: standard input");
  queries->check(input_path())->excludes(query);
  sub->add_option("--text", arguments->file,
                  "text file in UTF-8, a document a line; -: standard input")
      ->required()
      ->check(input_path());
  sub->add_option("--top", arguments->top, "number of documents, best first; default: all")
      ->check(integer(1));
  sub->add_option("--similarity", arguments->similarity,
                  "of vectors: " + similarity_names() + "; default: the model's own");
  add_prompt_options(*sub, arguments->prompt, "each query");
  sub->add_option("--batch", arguments->batch,
                  "number of texts or pairs that are computed at a time")
      ->capture_default_str()
      ->check(integer(1, kMostTexts));
  add_threads(*sub);
  add_freezing(*sub, arguments->freezing);
  add_allow_unexpected(*sub, arguments->load);
  add_adapters(*sub, arguments->load);
  sub->footer(
      "Example:\n  posenc rank models/ms-marco-MiniLM-L6-v2 --query 'Where is the cat?' --text "
      "documents.txt --top 3");
  sub->callback([arguments, query, queries] {
    if (query->count() == 0 && queries->count() == 0)
      fail_usage("--query or --queries is required");
    if (arguments->queries == "-" && arguments->file == "-")
      fail_usage("--queries and --text must not both be standard input");
    rank(*arguments);
  });
}

const Command kRank{17, add_rank};

}  // namespace
}  // namespace posenc::cli
