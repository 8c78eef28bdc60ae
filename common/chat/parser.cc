// SPDX-License-Identifier: Apache-2.0
#include "common/chat/parser.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/chat/expression_parser.h"
#include "common/chat/lexer.h"
#include "common/chat/token_stream.h"

namespace setu::chat {
namespace {

class StatementParser {
 public:
  explicit StatementParser(TokenStream& stream) : stream_(stream), expressions_(stream) {}

  // Up to one of the statements in `ends` (behind its "{%", at its name), or to the template's end.
  absl::StatusOr<Body> ParseBody(std::initializer_list<std::string_view> ends) {
    const TokenStream::Level level(stream_);
    SETU_RETURN_IF_ERROR(level.Check());
    Body body;
    while (stream_.Peek().kind != TokenKind::kEnd) {
      const int line = stream_.line();
      if (stream_.Peek().kind == TokenKind::kData) {
        body.push_back({line, Data{stream_.Take().text}});
        continue;
      }
      if (stream_.Peek().kind == TokenKind::kPrintBegin) {
        stream_.Take();
        SETU_ASSIGN_OR_RETURN(ExprPtr value, expressions_.ParseTuple());
        SETU_RETURN_IF_ERROR(stream_.Expect(TokenKind::kPrintEnd, "}}"));
        body.push_back({line, Output{std::move(value)}});
        continue;
      }
      SETU_RETURN_IF_ERROR(stream_.Expect(TokenKind::kBlockBegin, "a tag"));
      for (std::string_view end : ends) {
        if (stream_.IsName(end)) return body;
      }
      SETU_RETURN_IF_ERROR(ParseStatement(line, body));
    }
    if (ends.size() == 0) return body;
    return stream_.Unexpected(absl::StrCat("'", std::string(*(ends.end() - 1)), "'"));
  }

 private:
  // Behind "{%".
  absl::Status ParseStatement(int line, Body& body) {
    const auto add = [&](auto node) -> absl::Status {
      if (!node.ok()) return node.status();
      body.push_back({line, *std::move(node)});
      return absl::OkStatus();
    };
    const std::string name = stream_.Peek().text;
    SETU_RETURN_IF_ERROR(stream_.Expect(TokenKind::kName, "a statement"));
    if (name == "if") return add(ParseIf());
    if (name == "for") return add(ParseFor());
    if (name == "set") return add(ParseSet());
    if (name == "macro") return add(ParseMacro());
    if (name == "generation") return add(ParseGeneration());
    if (name == "break" || name == "continue") {
      if (loops_ == 0) return ErrorAt(line, absl::StrCat("'", name, "' is outside a loop"));
      SETU_RETURN_IF_ERROR(EndBlock());
      if (name == "break") {
        body.push_back({line, Break{}});
      } else {
        body.push_back({line, Continue{}});
      }
      return absl::OkStatus();
    }
    return ErrorAt(line, absl::StrCat("statement '", name, "' is not supported here"));
  }

  absl::Status EndBlock() { return stream_.Expect(TokenKind::kBlockEnd, "%}"); }
  // The end statement itself: its name and "%}".
  absl::Status EndBlock(std::string_view name) {
    SETU_RETURN_IF_ERROR(stream_.ExpectName(name));
    return EndBlock();
  }

  absl::StatusOr<If> ParseIf() {
    If node;
    do {
      SETU_ASSIGN_OR_RETURN(ExprPtr condition, expressions_.ParseTuple());
      SETU_RETURN_IF_ERROR(EndBlock());
      SETU_ASSIGN_OR_RETURN(Body body, ParseBody({"elif", "else", "endif"}));
      node.branches.emplace_back(std::move(condition), std::move(body));
    } while (stream_.TakeName("elif"));
    if (stream_.TakeName("else")) {
      SETU_RETURN_IF_ERROR(EndBlock());
      SETU_ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endif"}));
    }
    SETU_RETURN_IF_ERROR(EndBlock("endif"));
    return node;
  }

  absl::StatusOr<For> ParseFor() {
    For node;
    SETU_ASSIGN_OR_RETURN(node.targets, ParseTargets());
    SETU_RETURN_IF_ERROR(stream_.ExpectName("in"));
    SETU_ASSIGN_OR_RETURN(node.items, expressions_.ParseUnconditional());
    if (stream_.TakeName("if")) {
      SETU_ASSIGN_OR_RETURN(node.condition, expressions_.Parse());
    }
    SETU_RETURN_IF_ERROR(EndBlock());
    ++loops_;
    SETU_ASSIGN_OR_RETURN(node.body, ParseBody({"else", "endfor"}));
    --loops_;
    if (stream_.TakeName("else")) {
      SETU_RETURN_IF_ERROR(EndBlock());
      SETU_ASSIGN_OR_RETURN(node.otherwise, ParseBody({"endfor"}));
    }
    SETU_RETURN_IF_ERROR(EndBlock("endfor"));
    return node;
  }

  absl::StatusOr<std::string> ParseTarget() {
    std::string name = stream_.Peek().text;
    SETU_RETURN_IF_ERROR(stream_.Expect(TokenKind::kName, "a variable's name"));
    return name;
  }

  // a, b or (a, b)
  absl::StatusOr<std::vector<std::string>> ParseTargets() {
    std::vector<std::string> targets;
    const bool brackets = stream_.TakeOperator("(");
    do {
      SETU_ASSIGN_OR_RETURN(std::string target, ParseTarget());
      targets.push_back(std::move(target));
    } while (stream_.TakeOperator(","));
    if (brackets) SETU_RETURN_IF_ERROR(stream_.ExpectOperator(")"));
    return targets;
  }

  absl::StatusOr<Set> ParseSet() {
    Set node;
    SETU_ASSIGN_OR_RETURN(node.targets, ParseTargets());
    if (node.targets.size() == 1 && stream_.TakeOperator(".")) {
      SETU_ASSIGN_OR_RETURN(node.attribute, ParseTarget());
    }
    if (stream_.TakeOperator("=")) {
      SETU_ASSIGN_OR_RETURN(node.value, expressions_.ParseTuple());
      SETU_RETURN_IF_ERROR(EndBlock());
      return node;
    }
    if (node.targets.size() > 1) return stream_.Unexpected("=");
    SETU_RETURN_IF_ERROR(EndBlock());
    SETU_ASSIGN_OR_RETURN(node.body, ParseBody({"endset"}));
    SETU_RETURN_IF_ERROR(EndBlock("endset"));
    return node;
  }

  absl::StatusOr<MacroDefinition> ParseMacro() {
    auto macro = std::make_unique<Macro>();
    SETU_ASSIGN_OR_RETURN(macro->name, ParseTarget());
    SETU_RETURN_IF_ERROR(stream_.ExpectOperator("("));
    while (!stream_.TakeOperator(")")) {
      Argument parameter;
      SETU_ASSIGN_OR_RETURN(parameter.name, ParseTarget());
      if (stream_.TakeOperator("=")) {
        SETU_ASSIGN_OR_RETURN(parameter.value, expressions_.Parse());
      }
      macro->parameters.push_back(std::move(parameter));
      if (!stream_.TakeOperator(",") && !stream_.IsOperator(")")) {
        return stream_.Unexpected("',' or ')'");
      }
    }
    SETU_RETURN_IF_ERROR(EndBlock());
    const size_t outer_loops = std::exchange(loops_, 0);
    SETU_ASSIGN_OR_RETURN(macro->body, ParseBody({"endmacro"}));
    loops_ = outer_loops;
    SETU_RETURN_IF_ERROR(EndBlock("endmacro"));
    return MacroDefinition{std::move(macro)};
  }

  absl::StatusOr<Block> ParseGeneration() {
    SETU_RETURN_IF_ERROR(EndBlock());
    Block node;
    SETU_ASSIGN_OR_RETURN(node.body, ParseBody({"endgeneration"}));
    SETU_RETURN_IF_ERROR(EndBlock("endgeneration"));
    return node;
  }

  TokenStream& stream_;
  ExpressionParser expressions_;
  size_t loops_ = 0;  // around the statement, inside the macro
};

}  // namespace

absl::StatusOr<Body> ParseTemplate(std::string_view source, size_t max_depth) {
  SETU_ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(source));
  TokenStream stream(std::move(tokens), max_depth);
  return StatementParser(stream).ParseBody({});
}

}  // namespace setu::chat
