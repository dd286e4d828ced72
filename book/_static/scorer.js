/* The search puts what a word means before where it is used, and pages before functions. */
var Scorer = {
  score: function (result) {
    var page = result[0], anchor = result[2] || "", score = result[4];
    if (page === "book/glossary") return score + (anchor.indexOf("#term-") === 0 ? 1000 : 100);
    return page.indexOf("book/api") === 0 ? score - 10 : score;
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2
};
